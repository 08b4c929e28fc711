"""`topoplace policies` shows the first sentence of each policy, with the references that it names."""

from __future__ import annotations

import json

from command_line import Call


def test_a_sentence_does_not_end_inside_brackets(call: Call) -> None:
    rows = json.loads(call("policies", "--json").out)
    assert rows
    for row in rows:
        what = row["what"]
        assert what
        assert what.count("(") == what.count(")"), what
        assert not what.endswith((".", " eq", "Fig"))
    said = {row["policy"]: row["what"] for row in rows}
    assert said["mapa-greedy"].endswith("(MAPA, eq. 1), ignoring later jobs")
    assert "(Fig. 5)" in said["g-queue"]
