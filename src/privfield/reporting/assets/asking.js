"use strict";
/* The page answers: exact shares given some answers, by elimination of variables in log space. */
(function () {
  const data = JSON.parse(document.getElementById("data").textContent).asking;
  if (!data) { return; }
  const variables = data.variables, shape = variables.map((v) => v.levels.length);

  /* -- tables of logarithms: { scope: variables, cells: row-major } ---------------------------- */

  /* For each cell of a table over `scope`: where a table over `other` has it. */
  function places(scope, other) {
    const steps = new Map();
    let cells = 1;
    for (let k = other.length - 1; k >= 0; k--) { steps.set(other[k], cells); cells *= shape[other[k]]; }
    let found = Int32Array.of(0);
    for (const v of scope) {
      const step = steps.get(v) || 0, next = new Int32Array(found.length * shape[v]);
      for (let i = 0, k = 0; i < found.length; i++) {
        for (let x = 0; x < shape[v]; x++) { next[k++] = found[i] + x * step; }
      }
      found = next;
    }
    return found;
  }

  /* log(a · b), over the variables of both. */
  function product(a, b) {
    const scope = a.scope.concat(b.scope.filter((v) => !a.scope.includes(v)));
    const one = places(scope, a.scope), two = places(scope, b.scope), cells = new Float64Array(one.length);
    for (let i = 0; i < cells.length; i++) { cells[i] = a.cells[one[i]] + b.cells[two[i]]; }
    return { scope, cells };
  }

  /* log Σ exp over all variables that are not in `scope`. */
  function project(table, scope) {
    const at = places(table.scope, scope), size = scope.reduce((n, v) => n * shape[v], 1);
    const top = new Float64Array(size).fill(-Infinity), cells = new Float64Array(size);
    for (let i = 0; i < at.length; i++) { if (table.cells[i] > top[at[i]]) { top[at[i]] = table.cells[i]; } }
    for (let i = 0; i < at.length; i++) {
      if (table.cells[i] > -Infinity) { cells[at[i]] += Math.exp(table.cells[i] - top[at[i]]); }
    }
    for (let j = 0; j < size; j++) { cells[j] = top[j] > -Infinity ? top[j] + Math.log(cells[j]) : -Infinity; }
    return { scope, cells };
  }

  const factors = data.factors.map(([scope, numbers]) =>
    ({ scope, cells: Float64Array.from(numbers, (x) => (x === null ? -Infinity : x)) }));

  /* The part of a table that agrees with the answers. */
  function given(factor, answers) {
    const scope = factor.scope.filter((v) => !answers.has(v));
    if (scope.length === factor.scope.length) { return factor; }
    let start = 0, step = 1;
    for (let k = factor.scope.length - 1; k >= 0; k--) {
      const v = factor.scope[k];
      start += (answers.get(v) || 0) * step;
      step *= shape[v];
    }
    const at = places(scope, factor.scope);
    return { scope, cells: Float64Array.from(at, (i) => factor.cells[start + i]) };
  }

  /* log Z and the log-share of each level of each variable, given answers (variable → level).
     Up a junction tree, then down: each cluster belongs to the variable that is eliminated in it. */
  function ask(answers) {
    const order = data.order.filter((v) => !answers.has(v)), turn = new Map(order.map((v, k) => [v, k]));
    const first = (scope) => Math.min(...scope.map((v) => turn.get(v)));
    const waiting = order.map((v) => [{ scope: [v], cells: new Float64Array(shape[v]) }]);
    const clusters = [], messages = [];
    let total = 0;
    const hand = (table) => {
      if (table.scope.length) { waiting[first(table.scope)].push(table); } else { total += table.cells[0]; }
    };
    factors.forEach((factor) => hand(given(factor, answers)));
    order.forEach((v, k) => {
      waiting[k].sort((a, b) => a.cells.length - b.cells.length);
      clusters[k] = waiting[k].reduce(product);
      messages[k] = project(clusters[k], clusters[k].scope.filter((u) => u !== v));
      hand(messages[k]);
    });
    const shares = shape.map((size, v) =>
      (answers.has(v) ? Float64Array.from({ length: size }, (_, x) => (x === answers.get(v) ? 0 : -Infinity)) : null));
    for (let k = order.length - 1; k >= 0; k--) {
      const up = messages[k];
      if (up.scope.length) { /* what the rest of the tree says, which is its table without our message */
        const down = project(clusters[first(up.scope)], up.scope);
        down.cells.forEach((x, i) => { down.cells[i] = up.cells[i] > -Infinity ? x - up.cells[i] : 0; });
        clusters[k] = product(clusters[k], down);
      }
      const own = project(clusters[k], [order[k]]), all = project(own, []).cells[0];
      shares[order[k]] = own.cells.map((x) => (total > -Infinity ? x - all : -Infinity));
    }
    return { log: total, shares };
  }

  const start = ask(new Map());
  window.privfieldAsk = (answers) => {
    const found = ask(new Map(answers));
    return { probability: Math.exp(found.log - start.log), shares: found.shares.map((s) => Array.from(s, Math.exp)) };
  };

  /* -- what the reader sees -------------------------------------------------------------------- */

  const MANY = 6, list = document.getElementById("ask-list"), status = document.getElementById("ask-status");
  const LONG = 16; /* characters: such names stand above their bars */
  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    if (name) { element.className = name; }
    if (text !== undefined) { element.textContent = text; }
    return element;
  };
  const percent = (share) => {
    const value = 100 * share;
    return (value > 0 && value < 0.1 ? "< 0.1" : value < 100 && value > 99.9 ? "> 99.9" : value.toFixed(1)) + "%";
  };
  const people = (count) => (count < 10 ? "fewer than 10" : "about " + Number(count.toPrecision(3)).toLocaleString("en"));

  const items = variables.map((variable, v) => {
    const item = make("li"), select = make("select"), label = make("label", "", variable.name);
    label.htmlFor = select.id = "ask-" + v;
    if (variable.question) { label.append(make("span", "question", variable.question)); }
    select.append(new Option("not set", ""));
    variable.levels.forEach((level, x) => select.append(new Option(level, x)));
    const head = make("div", "ask-head");
    head.append(label, select);
    item.append(head);
    const shown = shape[v] === 2 ? [1] : variable.levels.map((_, x) => x);
    item.classList.toggle("long", shown.some((x) => variable.levels[x].length > LONG));
    const fold = shown.length > MANY ? make("details") : null;
    if (fold) { fold.append(make("summary", "", "all " + shown.length + " levels")); }
    const rows = shown.map((x, k) => {
      const row = make("div", "ask-level"), bar = make("span", "ask-bar"), fill = make("i"), mark = make("b");
      const number = make("span", "num"), before = make("span", "ask-before");
      bar.setAttribute("aria-hidden", "true");
      bar.append(fill, mark);
      mark.style.left = 100 * Math.exp(start.shares[v][x]) + "%";
      row.append(make("span", "ask-name", variable.levels[x]), bar, number, before);
      (fold && k >= MANY - 1 ? fold : item).append(row);
      return { x, row, fill, number, before };
    });
    if (fold) { item.append(fold); }
    select.addEventListener("change", update);
    list.append(item);
    return { v, item, select, rows };
  });

  function update() {
    const answers = new Map();
    items.forEach(({ v, select }) => { if (select.value !== "") { answers.set(v, Number(select.value)); } });
    const found = answers.size ? ask(answers) : start, possible = found.log > -Infinity;
    const moves = [];
    items.forEach(({ v, item, select, rows }) => {
      item.classList.toggle("set", answers.has(v));
      const free = possible && !answers.has(v);
      Array.from(select.options).slice(1).forEach((option, x) => {
        option.text = variables[v].levels[x] + (free && found.shares[v][x] === -Infinity ? " (impossible)" : "");
      });
      rows.forEach(({ x, fill, number, before }) => {
        const share = Math.exp(found.shares[v][x]), was = Math.exp(start.shares[v][x]);
        fill.style.width = (possible ? 100 * share : 0) + "%";
        number.textContent = !possible ? "–" : found.shares[v][x] > -Infinity || answers.has(v) ? percent(share) : "impossible";
        before.textContent = answers.size ? (start.shares[v][x] > -Infinity ? "was " + percent(was) : "") : "";
        if (free) { moves.push({ size: Math.abs(share - was), text: variables[v].name + " = " + variables[v].levels[x] + ": " + percent(was) + " → " + percent(share) }); }
      });
    });
    status.textContent = possible ? report(answers, Math.exp(found.log - start.log), moves)
      : "Impossible: the model rules these answers out together, so nobody gives them.";
  }

  function report(answers, share, moves) {
    if (!answers.size) { return "No answers are set: these are the shares of everybody."; }
    const words = [...answers].map(([v, x]) => variables[v].name + " = " + variables[v].levels[x]).join(", ");
    let text = "Given " + words + ". ";
    if (data.people === null) {
      text += percent(share) + " of people answer so, by the model. ";
    } else {
      const of = (data.peopleArePublic ? "" : "about ") + Math.round(data.people).toLocaleString("en");
      const count = share * data.people, rests = people(count);
      text += "Rests on " + rests + " of " + of + " people (" + percent(share) + "), by the model. ";
      if (count < 10) { text += "That is too few to trust: what follows is what the model assumes. "; }
    }
    const most = moves.filter((move) => move.size >= 0.005).sort((a, b) => b.size - a.size).slice(0, 3);
    return text + (most.length ? "Moved most: " + most.map((move) => move.text).join("; ") + "."
      : "No share moves by half a percentage point.");
  }

  document.getElementById("ask-clear").addEventListener("click", () => {
    items.forEach(({ select }) => { select.value = ""; });
    update();
  });
  document.getElementById("ask-find").addEventListener("input", function () {
    const wanted = this.value.toLowerCase();
    items.forEach(({ v, item }) => {
      const text = variables[v].name + " " + variables[v].question;
      item.hidden = !text.toLowerCase().includes(wanted) && !item.classList.contains("set");
    });
  });
  update();
})();
