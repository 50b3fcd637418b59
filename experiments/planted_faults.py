"""Privacy faults, each as one replacement in the source: what experiments/mutants.py plants."""

from dataclasses import dataclass

CONTRACT = "tests/mechanisms/test_contract.py"


@dataclass(frozen=True)
class Fault:
    """`old`, which occurs once in `file`, becomes `new`; `tests` are arguments of pytest."""

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    named: bool = False  # must be among the faults: it survived the tests once


def promise(kind: str) -> tuple[str, ...]:
    """The contract between all neighbours, for one mechanism."""
    return (CONTRACT, "-k", f"promise_is_kept and {kind}")


def contract(test: str, kind: str) -> tuple[str, ...]:
    """Another test of the contract."""
    return (CONTRACT, "-k", f"{test} and {kind}")


def tests(*paths: str) -> tuple[str, ...]:
    """Files of tests."""
    return (*(f"tests/{path}" for path in paths), "-m", "not slow")


P, M = "privacy/", "mechanisms/"
TABLES, MOMENTS, SGD = promise("ContingencyTables"), promise("SecondMoments"), promise("Stochastic")
PSEUDO, SCORE = promise("PseudolikelihoodGradients"), promise("HeldOutScore")
EDGES, CHAINS, PARITIES = promise("EdgeSelection"), promise("ChainTr"), promise("NoisyParities")
PMW, LEADER = promise("MultiplicativeWeights"), promise("PerturbedLeader")
ISING, PAIRWISE = promise("IsingFrankWolfe"), promise("PairwiseFrankWolfe")
CUT = contract("killed_job", "ContingencyTables")

FAULTS = [
    # -- what all mechanisms share
    Fault(
        "tables: the number of tables is forgotten, add-remove",
        P + "adjacency.py",
        "return Sensitivity(tables * unit_weight, tables * unit_weight**2)",
        "return Sensitivity(unit_weight, unit_weight**2)",
        TABLES,
    ),
    Fault(
        "tables: replace-one counts as add-remove",
        P + "adjacency.py",
        "return Sensitivity(2 * tables * unit_weight, 2 * tables * unit_weight**2)",
        "return Sensitivity(tables * unit_weight, tables * unit_weight**2)",
        TABLES,
    ),
    Fault(
        "tables: the weight of a person is not squared",
        P + "adjacency.py",
        "return Sensitivity(2 * tables * unit_weight, 2 * tables * unit_weight**2)",
        "return Sensitivity(2 * tables * unit_weight, 2 * tables * unit_weight)",
        TABLES,
    ),
    Fault(
        "Laplace scale halved",
        P + "noise.py",
        "float_above(sensitivity.l1 / epsilon)",
        "float_above(sensitivity.l1 / (2 * epsilon))",
        MOMENTS,
    ),
    Fault(
        "Gaussian scale smaller by √2",
        P + "noise.py",
        "sqrt_above(sensitivity.l2_squared / (2 * rho))",
        "sqrt_above(sensitivity.l2_squared / (4 * rho))",
        MOMENTS,
    ),
    Fault(
        "Laplace noise in a ρ budget: ε twice too large",
        P + "noise.py",
        "sqrt_below(2 * budget.exact_rho)  # ε",
        "sqrt_below(8 * budget.exact_rho)  # ε",
        tests("privacy/test_noise.py"),
    ),
    Fault(
        "Gaussian noise in a pure budget",
        P + "noise.py",
        "    if pure:\n",
        '    if pure and noise != "gaussian":\n',
        tests("privacy/test_noise.py"),
    ),
    Fault(
        "one noise for all cells",
        P + "noise.py",
        "    return noisy.reshape(values.shape)",
        "    return (flat + (noisy - flat)[0]).reshape(values.shape)",
        tests("privacy/test_noise.py", "privacy/test_laws.py"),
    ),
    Fault(
        "the Gaussian sampler draws half of the scale",
        P + "noise.py",
        'dp.l2_distance(T="f64"), scale=scale)',
        'dp.l2_distance(T="f64"), scale=scale / 2)',
        tests("privacy/test_noise.py"),
    ),
    Fault(
        "the Laplace sampler draws half of the scale",
        P + "noise.py",
        'dp.l1_distance(T="i64"), scale=scale)',
        'dp.l1_distance(T="i64"), scale=scale / 2)',
        tests("privacy/test_noise.py"),
    ),
    Fault(
        "selection in ρ: scale smaller by √2",
        P + "selection.py",
        'square = sensitivity**2 / (8 * _positive("rho", rho))',
        'square = sensitivity**2 / (16 * _positive("rho", rho))',
        PMW,
    ),
    Fault(
        "selection in ε: scale halved",
        P + "selection.py",
        'range_sensitivity) / _positive("epsilon", epsilon)',
        'range_sensitivity) / (2 * _positive("epsilon", epsilon))',
        tests("privacy/test_selection.py"),
    ),
    Fault(
        "exponential mechanism: scores count twice",
        P + "selection.py",
        "np.multiply(gaps, -rates[:, np.newaxis], out=used)",
        "np.multiply(gaps, -2 * rates[:, np.newaxis], out=used)",
        tests("privacy/test_selection.py"),
    ),
    Fault(
        "permute-and-flip: scores count twice",
        P + "selection.py",
        "bernoulli_exp((top - values[candidate]) / step, source)",
        "bernoulli_exp(2 * (top - values[candidate]) / step, source)",
        tests("privacy/test_selection.py"),
    ),
    Fault(
        "stable release: an unstable value comes out with 2δ",
        P + "stability.py",
        "found = [_down(delta)]",
        "found = [_down(2 * delta)]",
        tests("privacy/test_stability.py"),
    ),
    Fault(
        "stable release: probabilities grow with 2ε",
        P + "stability.py",
        "growth = _exp_below(epsilon)",
        "growth = _exp_below(2 * epsilon)",
        tests("privacy/test_stability.py"),
    ),
    Fault(
        "stable release: the coin is not thrown",
        P + "stability.py",
        "return source.bits(_BITS) < chance * _GRID",
        "return stability > 0 or source.bits(_BITS) < chance * _GRID",
        tests("privacy/test_stability.py", "privacy/test_laws.py"),
    ),
    Fault(
        "mode of votes: the gap is not halved",
        P + "stability.py",
        "return max(0, (first - second - 1) // 2)",
        "return max(0, first - second - 1)",
        promise("StableStructure"),
    ),
    Fault(
        "majority of votes: a lead counts twice",
        P + "stability.py",
        "return (blocks - 2 * votes) // 2  #",
        "return blocks - 2 * votes  #",
        promise("StableStructure"),
    ),
    Fault(
        "tables of different noise all get that of the first",
        P + "laws.py",
        "out[own] = add_noise(flat[own], law, seed)",
        "out[own] = add_noise(flat[own], self.laws[0], seed)",
        tests("privacy/test_laws.py"),
    ),
    Fault(
        "a choice draws with half of its scale",
        P + "laws.py",
        "exponential_mechanism_rows(_rows(values), self.scales, entropy=entropy)",
        "exponential_mechanism_rows(\n"
        "            _rows(values), [each / 2 for each in self.scales], entropy=entropy)",
        tests("privacy/test_laws.py"),
    ),
    Fault(
        "permute-and-flip draws with half of its scale",
        P + "laws.py",
        "permute_and_flip(values, self.scale, entropy=entropy)",
        "permute_and_flip(values, self.scale / 2, entropy=entropy)",
        tests("privacy/test_laws.py"),
    ),
    Fault(
        "a stable value gets two coins",
        P + "laws.py",
        "out = may_release(stability, self.epsilon, self.delta, entropy=entropy)",
        "out = may_release(stability, self.epsilon, self.delta, entropy=entropy) or may_release(\n"
        "            stability, self.epsilon, self.delta, entropy=entropy)",
        tests("privacy/test_laws.py"),
    ),
    Fault(
        "the stated loss of Gaussian noise is halved",
        P + "laws.py",
        "rho = sum(d * d for d in moved) / (2 * scale**2)",
        "rho = sum(d * d for d in moved) / (4 * scale**2)",
        tests("privacy/test_laws.py"),
    ),
    Fault(
        "the stated loss of a choice is halved",
        P + "laws.py",
        "total = total + Cost(width**2 / 8, 0, width)",
        "total = total + Cost(width**2 / 16, 0, width / 2)",
        tests("privacy/test_laws.py"),
    ),
    Fault(
        "sampling: equal steps are counted once",
        P + "sampling.py",
        "moved[2 * alone.exact_rho, law.rate] += 1",
        "moved[2 * alone.exact_rho, law.rate] = 1",
        tests("privacy/test_sampling.py"),
    ),
    Fault(
        "sampling: the noise multiplier is halved",
        P + "sampling.py",
        "        found, slack = found * (1 + slack), 2 * slack\n    return found",
        "        found, slack = found * (1 + slack), 2 * slack\n    return found / 2",
        SGD,
    ),
    Fault(
        "sampling: the accountant halves the rate",
        P + "sampling.py",
        "q = Decimal(rate.numerator) / rate.denominator",
        "q = Decimal(rate.numerator) / (2 * rate.denominator)",
        tests("privacy/test_sampling.py"),
    ),
    Fault(
        "sampling: everyone is drawn",
        P + "randomness.py",
        "if self._watch is None and rate < 1:",
        "if False:",
        contract("samples_have", "Stochastic"),
        named=True,
    ),
    Fault(
        "sampling: one sample for all steps",
        P + "randomness.py",
        "        return chosen\n",
        '        return self.__dict__.setdefault("kept", chosen)\n',
        contract("samples_have", "Stochastic"),
        named=True,
    ),
    Fault(
        "every step has the number, and so the noise, of the first",
        P + "randomness.py",
        "        self._steps += 1\n",
        "        self._steps += 0\n",
        contract("noise_differs", "MultiplicativeWeights"),
    ),
    Fault(
        "noise without a seed can be repeated",
        P + "randomness.py",
        "return number, Entropy.system()",
        "return number, Entropy.insecure(number)",
        contract("noise_differs", "ContingencyTables"),
    ),
    Fault(
        "the journal is not read",
        P + "randomness.py",
        "known = self._journal.read(number)",
        "known = None",
        contract("killed_job", "MultiplicativeWeights"),
    ),
    Fault(
        "the journal answers any question",
        P + "randomness.py",
        "if known[: len(mark)] != mark:",
        "if False:",
        tests("privacy/test_randomness.py"),
    ),
    Fault(
        "an outcome is used although another process was first",
        P + "ledger.py",
        "return self._known(db, number) or data",
        "return data",
        tests("privacy/test_ledger.py", "privacy/test_randomness.py"),
    ),
    Fault(
        "the charge is skipped",
        P + "mechanism.py",
        "        name = charge()\n",
        '        name = self.terms.job or "x"\n',
        contract("charge_is_on_disk", "ContingencyTables"),
    ),
    Fault(
        "the charge comes after the run",
        P + "mechanism.py",
        "        name = charge()\n        stored = ledger.result(name)\n",
        '        done = self._run(run, None, "").to_bytes()\n'
        "        name = charge()\n        stored = ledger.keep(name, done)\n",
        contract("charge_is_on_disk", "ContingencyTables"),
    ),
    Fault(
        "a job has no journal",
        P + "mechanism.py",
        "self._run(run, ledger.journal(name), name)",
        "self._run(run, None, name)",
        contract("listener_stops", "MultiplicativeWeights"),
    ),
    Fault(
        "a finished job runs again",
        P + "mechanism.py",
        "if self.terms.job is not None and ledger.knows(self.terms.job):",
        "if False:",
        contract("same_job_replays", "ContingencyTables"),
    ),
    Fault(
        "exceptions carry the frames of a private run",
        P + "mechanism.py",
        "problem = error if self.terms.stamp is not None else without_traces(error, self.title)",
        "problem = error",
        CUT,
    ),
    Fault(
        "exceptions show foreign texts",
        P + "mechanism.py",
        "if not known and not getattr(error, LISTENER, False):",
        "if False:",
        CUT,
    ),
    Fault(
        "the stamp of a seed is lost",
        P + "terms.py",
        "if self.insecure_seed is not None:\n            return",
        "if False:\n            return",
        contract("not_private_is_stamped", "ContingencyTables"),
    ),
    Fault(
        "the number of rows is public although people are protected",
        P + "terms.py",
        "self.adjacency is Adjacency.REPLACE_ONE and self.unit.is_row",
        "self.adjacency is Adjacency.REPLACE_ONE",
        TABLES,
    ),
    Fault(
        "the number of rows is public under add-remove",
        P + "terms.py",
        "self.adjacency is Adjacency.REPLACE_ONE and self.unit.is_row",
        "self.unit.is_row",
        MOMENTS,
    ),
    # -- ledger and composition
    Fault(
        "a ledger admits everything",
        P + "ledger.py",
        "if any(not route.missing for route in after):",
        "if True:",
        tests("privacy/test_ledger.py"),
    ),
    Fault(
        "a ledger adds up rows and people",
        P + "ledger.py",
        "if state.unit not in (None, unit):",
        "if False:",
        tests("privacy/test_ledger.py"),
    ),
    Fault(
        "a ledger mixes adjacencies",
        P + "ledger.py",
        "if Adjacency.parse(adjacency) is not self.adjacency:",
        "if False:",
        tests("privacy/test_ledger.py"),
    ),
    Fault(
        "a cost above its claim is charged",
        P + "ledger.py",
        "if claim is not None and not cost <= claim:",
        "if False:",
        tests("privacy/test_ledger.py"),
    ),
    Fault(
        "a job may change its request",
        P + "ledger.py",
        "                if known != row:\n",
        "                if False:\n",
        tests("privacy/test_ledger.py"),
    ),
    Fault(
        "two processes that finish one job return two results",
        P + "ledger.py",
        "        return bytes(row[0])\n\n    def journal",
        "        return data\n\n    def journal",
        tests("privacy/test_ledger.py"),
    ),
    Fault(
        "pure charges count half in a converted total",
        P + "composition.py",
        "return min(cost.exact_rho, cost.exact_epsilon / order)",
        "return min(cost.exact_rho, cost.exact_epsilon / order) / 2",
        tests("privacy/test_ledger.py"),
    ),
    Fault(
        "a release with a δ passes for zCDP",
        P + "composition.py",
        "    if any(c.cost.exact_delta for c in charges):",
        "    if False:",
        tests("privacy/test_ledger.py"),
    ),
    Fault(
        "δ is used twice: for adding and for converting",
        P + "composition.py",
        "return total.exact_delta - max(self.adding, self.stable)",
        "return total.exact_delta",
        tests("privacy/test_ledger.py"),
    ),
    Fault(
        "conversion to ρ forgets half of the penalty",
        P + "conversions.py",
        "rho = (_decimal(epsilon) - penalty) / a",
        "rho = (_decimal(epsilon) - penalty / 2) / a",
        tests("privacy/test_conversions.py"),
    ),
    Fault(
        "conversion to ε rounds down",
        P + "conversions.py",
        "_rounded(epsilon + _SLACK * (abs(penalty) + 1), ROUND_CEILING)",
        "_rounded(epsilon - _SLACK * (abs(penalty) + 1), ROUND_FLOOR)",
        tests("privacy/test_conversions.py"),
    ),
    Fault(
        "an (ε, δ) release costs only the ρ that it admits",
        P + "budgets.py",
        "return Cost(self._epsilon**2 / 2, self._delta, self._epsilon)",
        "return Cost(self._epsilon**2 / 8, self._delta, self._epsilon)",
        tests("privacy/test_budgets.py", "privacy/test_ledger.py"),
    ),
    # -- tables
    Fault(
        "design by cells: Laplace noise forgets the shares",
        M + "tables/design.py",
        "epsilon = cost.exact_epsilon * part",
        "epsilon = cost.exact_epsilon",
        TABLES,
    ),
    Fault(
        "design by cells: Gaussian noise forgets the shares",
        M + "tables/design.py",
        "rho = cost.exact_rho * part",
        "rho = cost.exact_rho",
        TABLES,
    ),
    Fault(
        "design of interactions: variances halved",
        M + "tables/design.py",
        "stretch = spent / float(cost.exact_rho) * _SLACK",
        "stretch = spent / float(cost.exact_rho) / 2",
        TABLES,
    ),
    Fault(
        "design of interactions: rows that agree are forgotten",
        M + "tables/design.py",
        "return max(alone, swapped) * task.unit_weight**2",
        "return alone * task.unit_weight**2",
        TABLES,
    ),
    Fault(
        "design of interactions: a person's weight is not squared",
        M + "tables/design.py",
        "return alone * task.unit_weight**2",
        "return alone * task.unit_weight",
        TABLES,
    ),
    Fault(
        "the exact number of rows is shown",
        M + "tables/mechanism.py",
        "int(counts[0].sum()) if terms.rows_are_public else None",
        "int(counts[0].sum())",
        TABLES,
    ),
    # -- moments and gradients
    Fault(
        "moments: L2 of a replaced row halved",
        M + "moments/mechanism.py",
        "l1, l2_squared = 2 * replaced, 4 * replaced",
        "l1, l2_squared = 2 * replaced, 2 * replaced",
        MOMENTS,
    ),
    Fault(
        "moments: the number of rows is released for nothing",
        M + "moments/mechanism.py",
        "added = p * (p + 1) // 2 + with_count",
        "added = p * (p + 1) // 2",
        MOMENTS,
    ),
    Fault(
        "moments: a person's rows are not squared",
        M + "moments/mechanism.py",
        "return Sensitivity(l1 * unit_rows, l2_squared * unit_rows**2)",
        "return Sensitivity(l1 * unit_rows, l2_squared * unit_rows)",
        MOMENTS,
    ),
    Fault(
        "pseudo-likelihood: the number of steps is forgotten",
        M + "gradients/pseudolikelihood.py",
        "sqrt_above(moved * steps / (2 * cost.exact_rho))",
        "sqrt_above(moved / (2 * cost.exact_rho))",
        PSEUDO,
    ),
    Fault(
        "pseudo-likelihood: a replaced row counts once",
        M + "gradients/pseudolikelihood.py",
        "square * (4 if adjacency is Adjacency.REPLACE_ONE else 1)",
        "square",
        PSEUDO,
    ),
    Fault(
        "pseudo-likelihood: the clip is skipped",
        M + "gradients/pseudolikelihood.py",
        "weight = np.floor(np.minimum(WEIGHT, limit / norm))",
        "weight = np.full(len(norm), float(WEIGHT))",
        PSEUDO,
    ),
    Fault(
        "pseudo-likelihood: the same noise at every step",
        M + "gradients/pseudolikelihood.py",
        '                found[step] = randomness.draw("gradient", noise, exact)\n',
        "                if step == 0:\n"
        '                    found[0], first = randomness.draw("gradient", noise, exact), exact\n'
        "                else:\n"
        "                    found[step] = exact + (found[0] - first)\n",
        PSEUDO,
        named=True,
    ),
    Fault(
        "private SGD: the clip is skipped",
        M + "gradients/sgd.py",
        "weights = np.floor(np.minimum(WEIGHT, limit / np.sqrt(np.maximum(squares, 1))))",
        "weights = np.full(len(squares), float(WEIGHT))",
        SGD,
    ),
    Fault(
        "private SGD: noise for one step",
        M + "gradients/sgd.py",
        "noise_multiplier(budget, int(self.steps), rate)",
        "noise_multiplier(budget, 1, rate)",
        SGD,
    ),
    Fault(
        "private SGD: the sampling rate is ignored",
        M + "gradients/sgd.py",
        "chosen = randomness.sample(law.rate, columns[0].size)",
        "chosen = np.ones(columns[0].size, np.bool_)",
        contract("samples_have", "Stochastic"),
        named=True,
    ),
    Fault(
        "private SGD: one Poisson sample is reused",
        M + "gradients/sgd.py",
        "chosen = randomness.sample(law.rate, columns[0].size)",
        "chosen = randomness.sample(law.rate, columns[0].size) if step == 0 else chosen",
        contract("samples_have", "Stochastic"),
        named=True,
    ),
    # -- scores
    Fault(
        "score: the number of people is released exactly under add-remove",
        M + "scores/mechanism.py",
        "number = counted if self.public else int(noisy[1]) / self.steps.each",
        "number = counted",
        SCORE,
        named=True,
    ),
    Fault(
        "score: the number of people counts as public under add-remove",
        M + "scores/losses.py",
        "return self.alone and terms.adjacency is Adjacency.REPLACE_ONE",
        "return self.alone",
        SCORE,
        named=True,
    ),
    Fault(
        "score: the number of rows is released for nothing",
        M + "scores/mechanism.py",
        "counted = 0 if self.public else self.losses.weight * steps.each",
        "counted = 0",
        SCORE,
    ),
    Fault(
        "score: losses are not clipped",
        M + "scores/losses.py",
        "return np.clip(found, 0, most)",
        "return found",
        SCORE,
    ),
    Fault(
        "score: a person counts as one row",
        M + "scores/mechanism.py",
        "lost = self.losses.weight * steps.most",
        "lost = steps.most",
        SCORE,
    ),
    # -- graphs
    Fault(
        "Chow–Liu: the add-remove step is halved",
        M + "graphs/statistics.py",
        "return Step(0, 4)",
        "return Step(0, 2)",
        promise("ChowLiuTree"),
        named=True,
    ),
    Fault(
        "Chow–Liu: the replace-one step of two levels is halved",
        M + "graphs/statistics.py",
        "return Step(-4, 4) if binary else Step(-6, 6)",
        "return Step(-2, 2) if binary else Step(-6, 6)",
        promise("ChowLiuTree"),
    ),
    Fault(
        "Chow–Liu: the replace-one step of more levels is that of two",
        M + "graphs/statistics.py",
        "return Step(-4, 4) if binary else Step(-6, 6)",
        "return Step(-4, 4)",
        tests("mechanisms/graphs/test_statistics.py"),
    ),
    Fault(
        "covariances: the add-remove step is halved",
        M + "graphs/statistics.py",
        "Step(self.bound, 4 + 2 * self.bound)",
        "Step(self.bound / 2, 2 + self.bound)",
        promise("CorrelationGraph"),
        named=True,
    ),
    Fault(
        "covariances: the replace-one step is halved",
        M + "graphs/statistics.py",
        "return Step(-4, 4) if replaced else",
        "return Step(-2, 2) if replaced else",
        promise("CorrelationGraph"),
    ),
    Fault(
        "products: the replace-one step is halved",
        M + "graphs/statistics.py",
        "return Step(2, 0) if replaced",
        "return Step(1, 0) if replaced",
        promise("CorrelationGraph"),
    ),
    Fault(
        "stable structure: blocks of equal size although the number of rows is private",
        M + "graphs/structure.py",
        "cut = cut_evenly if self.terms.rows_are_public else cut_by_coins",
        "cut = cut_evenly",
        (CONTRACT, "tests/mechanisms/graphs/test_structure.py", "-k", "Stable or coins or cut"),
    ),
    Fault(
        "stable structure: blocks by place",
        M + "graphs/blocks.py",
        "coins = entropy.words(len(rows)) % np.uint64(blocks)",
        "coins = np.arange(len(rows), dtype=np.uint64) % np.uint64(blocks)",
        tests("mechanisms/graphs/test_blocks.py"),
    ),
    # -- parities
    Fault(
        "parities: the number of rows is released for nothing",
        M + "parities/gaussian.py",
        "added = count_sets(variables, order) + with_count",
        "added = count_sets(variables, order)",
        PARITIES,
    ),
    Fault(
        "parities: a replaced row counts once",
        M + "parities/gaussian.py",
        "l1, l2_squared = 2 * moved, 4 * moved",
        "l1, l2_squared = moved, moved",
        PARITIES,
    ),
    Fault(
        "multiplicative weights: the number of rounds is forgotten",
        M + "parities/pmw.py",
        "part = self.row_rho / (2 * turns)",
        "part = self.row_rho / 2",
        PMW,
    ),
    Fault(
        "multiplicative weights: the measurement is not paid",
        M + "parities/pmw.py",
        "part = self.row_rho / (2 * turns)",
        "part = self.row_rho / turns",
        PMW,
    ),
    Fault(
        "multiplicative weights: a replaced row counts once",
        M + "parities/pmw.py",
        "reach = 1 if self.terms.adjacency is Adjacency.ADD_REMOVE else 2",
        "reach = 1",
        PMW,
    ),
    Fault(
        "multiplicative weights: scores move by half",
        M + "parities/pmw.py",
        "selection_scale_zcdp(2 * reach, part)",
        "selection_scale_zcdp(reach, part)",
        PMW,
    ),
    Fault(
        "rounds: a person's rows are not squared",
        M + "parities/base.py",
        "return self.cost.exact_rho / self.unit_rows**2",
        "return self.cost.exact_rho / self.unit_rows",
        PMW,
    ),
    Fault(
        "rounds: sums are divided by the exact number of rows",
        M + "parities/base.py",
        "found = rows if self.terms.rows_are_public else self.declared_rows",
        "found = rows",
        PMW,
    ),
    Fault(
        "perturbed leader: the number of rounds is forgotten",
        M + "parities/sepfem.py",
        "draws * range_sensitivity(adjacency), self.row_rho / turns)",
        "draws * range_sensitivity(adjacency), self.row_rho)",
        LEADER,
    ),
    Fault(
        "perturbed leader: the range is halved",
        M + "parities/sepfem.py",
        "return 2 if adjacency is Adjacency.ADD_REMOVE else 4",
        "return 1 if adjacency is Adjacency.ADD_REMOVE else 2",
        LEADER,
    ),
    Fault(
        "regressions and parities: both get all of the budget",
        M + "parities/phases.py",
        "return replace(self._undivided, terms=self._terms(1 - self.share))",
        "return self._undivided",
        promise("RegressionsAndParities"),
    ),
    # -- Frank–Wolfe
    Fault(
        "Frank–Wolfe: the number of steps is forgotten",
        M + "frank_wolfe/mechanism.py",
        "return self.amount / (self.regressions.shares * steps)",
        "return self.amount / self.regressions.shares",
        ISING,
    ),
    Fault(
        "Frank–Wolfe: the number of regressions is forgotten",
        M + "frank_wolfe/mechanism.py",
        "return self.amount / (self.regressions.shares * steps)",
        "return self.amount / steps",
        ISING,
    ),
    Fault(
        "Frank–Wolfe: replace-one counts as add-remove",
        M + "frank_wolfe/steps.py",
        "rows_per_unit * (2 if adjacency is Adjacency.ADD_REMOVE else 4)",
        "rows_per_unit * 2",
        ISING,
    ),
    Fault(
        "Frank–Wolfe: a person counts as one row",
        M + "frank_wolfe/mechanism.py",
        "spread = range_of(most, self.terms.adjacency, rows_per_unit)",
        "spread = range_of(most, self.terms.adjacency, 1)",
        PAIRWISE,
    ),
    Fault(
        "Frank–Wolfe: what a row contributes is halved after the first step",
        M + "frank_wolfe/mechanism.py",
        "contributions = limit * (LEVEL + table.largest",
        "contributions = limit // 2 * (LEVEL + table.largest",
        PAIRWISE,
    ),
    Fault(
        "Frank–Wolfe, pairwise: a variable of k levels counts once",
        M + "frank_wolfe/pairwise.py",
        "shares=sum(size - 1 for size in shape),",
        "shares=len(shape),",
        PAIRWISE,
    ),
    # -- chains
    Fault(
        "chains: replace-one counts as add-remove",
        M + "chains/mechanism.py",
        "units = 1 if adjacency is Adjacency.ADD_REMOVE else 2",
        "units = 1",
        CHAINS,
    ),
    Fault(
        "chains: first states are free",
        M + "chains/mechanism.py",
        "Sensitivity(units * (self.most + self.start), units * (self.most**2 + self.start**2))",
        "Sensitivity(units * self.most, units * self.most**2)",
        CHAINS,
    ),
    Fault(
        "chains: the limit of transitions is skipped",
        M + "chains/mechanism.py",
        "*(weights.whole, weights.most, weights.start, initial, transitions)",
        "*(weights.whole, weights.whole * 100, weights.start, initial, transitions)",
        CHAINS,
    ),
    # -- edges
    Fault(
        "edges: replace-one counts as add-remove",
        M + "edges/scores.py",
        "return unit_weight * (1 if adjacency is Adjacency.ADD_REMOVE else 2)",
        "return unit_weight",
        EDGES,
    ),
    Fault(
        "edges: the range of scores is halved",
        M + "edges/scores.py",
        "return 2 * distance_sensitivity(adjacency, unit_weight)",
        "return distance_sensitivity(adjacency, unit_weight)",
        EDGES,
    ),
    Fault(
        "edges: choices are not paid in ρ",
        M + "edges/gaussian.py",
        "self.chosen += self.whole * share",
        "self.chosen += 0 * share",
        EDGES,
    ),
    Fault(
        "edges: tables get half of their noise",
        M + "edges/gaussian.py",
        "math.sqrt(variance) * cells * float(_SLACK)",
        "math.sqrt(variance) * cells / 2",
        EDGES,
    ),
    Fault(
        "edges: Laplace tables forget that there are several",
        M + "edges/laplace.py",
        "laplace_scale(self._tables(1), own)",
        "laplace_scale(self._tables(1), own * len(scopes))",
        EDGES,
    ),
    Fault(
        "edges: nothing is paid in ε",
        M + "edges/laplace.py",
        "self.spent += epsilon",
        "self.spent += 0 * epsilon",
        EDGES,
    ),
    Fault(
        "stable tables: the tables get all of the budget",
        M + "edges/stable.py",
        "terms = replace(self.terms, budget=self.shares.tables, ledger=None, job=None, progress",
        "terms = replace(self.terms, budget=self.terms.budget, ledger=None, job=None, progress",
        promise("StableTables"),
    ),
    # -- networks
    Fault(
        "network statistics: the largest row sum is halved",
        M + "peers/statistics.py",
        "sensitivities = [self.network.largest_row_sum]",
        "sensitivities = [self.network.largest_row_sum // 2]",
        promise("NetworkStatistics"),
    ),
    Fault(
        "network statistics: covariates are free",
        M + "peers/statistics.py",
        "return choose_laws(self.terms.budget, sensitivities, self.noise)",
        "laws, cost = choose_laws(self.terms.budget, sensitivities[:1], self.noise)\n"
        "        return laws * len(sensitivities), cost",
        promise("NetworkStatistics"),
    ),
    Fault(
        "inverse sensitivity: rungs grow half as fast",
        M + "peers/local.py",
        "slope = 2 * int(np.abs(self.network.integers.data).max())",
        "slope = int(np.abs(self.network.integers.data).max())",
        promise("LocalStatistic"),
    ),
    Fault(
        "inverse sensitivity: rungs are passed with probability e^−ε",
        M + "peers/laws.py",
        "while bernoulli_exp(self.epsilon / 2, entropy):",
        "while bernoulli_exp(self.epsilon, entropy):",
        tests("mechanisms/peers/test_laws.py"),
    ),
    Fault(
        "inverse sensitivity: ε = √(16ρ) in a budget of ρ",
        M + "peers/local.py",
        "return sqrt_below(8 * budget.exact_rho), budget",
        "return sqrt_below(16 * budget.exact_rho), budget",
        promise("LocalStatistic"),
    ),
    Fault(
        "objective perturbation: half of the noise",
        M + "peers/objective.py",
        "scale = float_above(Fraction(shift) / noise)",
        "scale = float_above(Fraction(shift) / noise / 2)",
        promise("PerturbedObjective"),
    ),
    Fault(
        "objective perturbation: a quarter of the ridge",
        M + "peers/objective.py",
        "factor = 4 * grown / (grown - 1) ** 2",
        "factor = grown / (grown - 1) ** 2",
        promise("PerturbedObjective"),
    ),
]
