"""Mistakes that a type checker must find, one in each line: see test_types.py."""

import attnscope

attnscope.show(casual=True)
attnscope.html(titel="x")
attnscope.check({}, {}, rtoll=1)
attnscope.assert_same({}, {}, reference=3)
attnscope.reference([[1.0]], scal=2)
attnscope.capture(max_token=3)
attnscope.load(3)
attnscope.patch("m", "a", "b", answr="c", against="d")
attnscope.learn("induction", layer=2)
