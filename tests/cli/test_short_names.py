"""What files are called in results."""

from privfield.cli.arguments.files import short_names


def test_files_of_one_name_are_told_apart_and_odd_paths_are_kept():
    assert short_names(["x/m.pf", "y/n.pf"]) == ["m", "n"]
    assert short_names(["x/m.pf", "y/m.pf"]) == ["x/m", "y/m"]
    assert short_names([".", "."]) == [".", "."]
    assert short_names(["", ""]) == ["", ""]
