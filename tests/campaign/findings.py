"""What one check found, and the totals of many."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

SHOWN = 12                     # seeds of a kind in the printed table; the file has all of them


@dataclass
class Findings:
    """Of one seed: its kinds of input, its faults as (kind, words), figures and counts for the totals."""

    seed: int
    tags: list
    faults: list = field(default_factory=list)
    figures: dict = field(default_factory=dict)
    counts: Counter = field(default_factory=Counter)

    def add(self, kind, words):
        self.faults.append((kind, words))

    def note(self, name, value):
        """Keep the largest value of a figure."""
        self.figures[name] = max(self.figures.get(name, 0.0), value)

    def count(self, *names):
        self.counts.update(names)

    def lines(self):
        return [f"{self.seed}: {kind}: {words}  [{', '.join(self.tags)}]" for kind, words in self.faults]


class Totals:
    """Counts over the checks of one part."""

    def __init__(self, part, limits):
        """``limits``: name of a figure -> value from which on it is counted."""
        self.part, self.limits = part, limits
        self.tried, self.faulty = Counter(), Counter()
        self.n_tried = 0
        self.kinds, self.words = defaultdict(list), {}
        self.above, self.worst = Counter(), {}
        self.counts = Counter()

    def take(self, found):
        self.n_tried += 1
        self.tried.update(found.tags)
        self.counts.update(found.counts)
        if found.faults:
            self.faulty.update(found.tags)
            self.words[found.seed] = found.lines()
        for kind in dict.fromkeys(kind for kind, _ in found.faults):
            self.kinds[kind].append(found.seed)
        for name, value in found.figures.items():
            self.above[name] += value > self.limits.get(name, 0)
            if value > self.worst.get(name, (-1.0, None))[0]:
                self.worst[name] = (value, found.seed)

    @property
    def n_faulty(self):
        return len(self.words)

    def text(self):
        out = [f"{self.part}: {self.n_tried} tried, {self.n_faulty} at fault"]
        for kind, seeds in sorted(self.kinds.items(), key=lambda item: -len(item[1])):
            more = ", ..." if len(seeds) > SHOWN else ""
            out.append(f"  {kind}: {len(seeds)} (seeds {', '.join(map(str, seeds[:SHOWN]))}{more})")
        for name, (value, seed) in self.worst.items():
            out.append(f"  figure {name}: above {self.limits.get(name, 0):g} in {self.above[name]}, "
                       f"largest {value:.3g} (seed {seed})")
        if self.counts:
            out.append("  counts: " + ", ".join(f"{name} {n}" for name, n in self.counts.most_common()))
        counts = [f"{tag} {self.faulty[tag]}/{n}" for tag, n in self.tried.most_common() if ": " not in tag]
        out.append("  by kind of input, at fault / tried: " + ", ".join(counts))
        return "\n".join(out)

    def as_dict(self):
        return {"tried": self.n_tried, "at_fault": self.n_faulty, "kinds": self.kinds, "words": self.words,
                "figures": {name: {"above": self.above[name], "largest": value, "seed": seed}
                            for name, (value, seed) in self.worst.items()},
                "counts": dict(self.counts), "by_tag": {tag: [self.faulty[tag], n] for tag, n in self.tried.items()}}
