"""Random Python patterns from a grammar, with a few broken ones among them."""

import random
import re

LETTERS = "abcxyzABwWlos_019./:-"
ODD = "äÄßẞſsKkİıΣσςµμ٣²½ \t\n\u2028\x1c#]}{,=!<>&~|"
CATEGORIES = [r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"]
ESCAPES = [r"\.", r"\/", r"\n", r"\t", r"\x41", r"\u00e4", r"\U0001F600", r"\101", r"\0", r"\07", r"\-", r"\ ", r"\_",
           r"\\", r"\é", r"\a", r"\f", r"\v", r"\r"]
BAD = [r"\h", r"\R", r"\K", r"\Q", r"\E", r"\G", r"\X", r"\C", r"\p{L}", r"\o{11}", r"\x4", r"\u12", r"\c", r"\8",
       "*", "+", "?", "{2}", "(", ")", "[", "[b-a]", "[\\d-z]", "(?i)", "(?P<1a>x)", "(?P>x)", "(?'n'x)", "(?|a)",
       "(?<n>a)", "\\", "(?<=a+)", "(?<!a|bc)", "a**", "a{3,2}", r"\9", r"\777", "(?z)", "(?-a:x)", "(?L)",
       "[[:alpha:]]", "[a-\\w]"]
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}", "{0}", "{,}", "{}", "{a}", "{1,a}", "{ 1}"]


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, items):
        return self.random.choice(items)

    def chance(self, share):
        return self.random.random() < share

    def character(self):
        char = self.pick(LETTERS) if self.chance(0.8) else self.pick(ODD)
        return re.escape(char) if char in "|{}<>!=&~#.[]()" and self.chance(0.9) else char

    def set_item(self):
        kind = self.random.random()
        if kind < 0.5:
            return self.pick(LETTERS.replace("-", "") + "äßſK")
        if kind < 0.75:
            low, high = sorted([self.pick("abcxyz019ABZäÿ"), self.pick("abcxyz019ABZäÿ")])
            return f"{low}-{high}"
        return self.pick(CATEGORIES + [r"\b", r"\]", r"\-", r"\x41", "[", ":", "-", "&&", "||", "^", "."])

    def char_set(self):
        opening = "[^" if self.chance(0.3) else "["
        return opening + "".join(self.set_item() for _ in range(self.random.randint(1, 4))) + "]"

    def fixed(self):
        """Something of fixed width, for a look-behind."""
        width = self.random.randint(0, 3)
        atom = lambda: self.pick(["a", "b", ".", r"\w", "[ab]", "_", "s", r"\d"])
        one = lambda: "".join(atom() for _ in range(width))
        if self.chance(0.4):
            return f"(?:{one()}|{one()})"
        if self.chance(0.3):
            return one() + atom() + "{%d}" % self.random.randint(0, 3)
        return one()

    def atom(self, depth):
        kind = self.random.random()
        if kind < 0.45 or depth <= 0:
            return self.character()
        if kind < 0.55:
            return self.char_set()
        if kind < 0.62:
            return self.pick(CATEGORIES)
        if kind < 0.67:
            return self.pick(ESCAPES)
        if kind < 0.72:
            return "."
        if kind < 0.76:
            return self.pick(["^", "$", r"\A", r"\Z", r"\b", r"\B"])
        if kind < 0.81:
            opening = self.pick(["(?=", "(?!"])
            return opening + self.branches(depth - 1) + ")"
        if kind < 0.84:
            return self.pick(["(?<=", "(?<!"]) + self.fixed() + ")"
        if kind < 0.86:
            opening = self.pick(["(?i:", "(?s:", "(?m:", "(?a:", "(?x:", "(?-i:", "(?is-m:"])
            return opening + self.branches(depth - 1) + ")"
        if kind < 0.88:
            return "(?>" + self.branches(depth - 1) + ")"
        if kind < 0.89:
            return "(?#" + self.pick(["comment", "", "a|b", "(", r"\)"]) + ")"
        if kind < 0.95:
            return "(?:" + self.branches(depth - 1) + ")"
        return "(" + self.branches(depth - 1) + ")"

    def piece(self, depth):
        atom = self.atom(depth)
        if self.chance(0.25):
            atom += self.pick(QUANTIFIERS)
            if self.chance(0.2):
                atom += self.pick(["?", "+"])
        return atom

    def sequence(self, depth):
        return "".join(self.piece(depth) for _ in range(self.random.randint(0 if self.chance(0.1) else 1, 4)))

    def branches(self, depth):
        return "|".join(self.sequence(depth) for _ in range(self.pick([1, 1, 1, 2, 3])))

    def pattern(self):
        pattern = self.branches(3)
        if self.chance(0.1):
            pattern = self.pick(["(?i)", "(?s)", "(?m)", "(?x)", "(?a)", "(?ai)", "(?im)", "(?u)", "(?mx)"]) + pattern
        if self.chance(0.08):
            at = self.random.randint(0, len(pattern))
            pattern = pattern[:at] + self.pick(BAD) + pattern[at:]
        if self.chance(0.06):
            # A group and a reference to it, at the top, where both engines agree on what the group holds.
            pattern = f"({self.pick(['a', '.', '[ab]+', 'a|b', '.*', 's', 'x?'])})" + self.pick(
                [r"\1", "(?P=n)", r"(?(1)b|c)", r"\1+", r".*\1", r"(?(1)_)"]) + pattern
        if self.chance(0.03):
            group = f"(?P<n>{self.pick(['a', 'ss', '[xy]', 'lo'])})"
            pattern = group + self.pick(["(?P=n)", ".(?P=n)", "(?(n)s|t)"]) + pattern
        return pattern


def is_slow(pattern):
    """Nested repetitions take Python itself too long on some names."""
    return re.search(r"[*+}][?+]?\)+[*+{]", pattern) is not None and len(re.findall(r"[*+{]", pattern)) > 4


def generate(seed, count):
    generator = Generator(seed)
    patterns = []
    while len(patterns) < count:
        pattern = generator.pattern()
        if not is_slow(pattern):
            patterns.append(pattern)
    return patterns
