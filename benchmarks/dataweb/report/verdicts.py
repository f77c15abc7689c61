"""The targets of the benchmark, and whether a run reached them. Pure."""

from collections.abc import Iterator

from benchmarks.dataweb.experiment import DataWebExperiment, Results
from benchmarks.dataweb.trial import TrialOutcome

Verdict = tuple[str, str, str]
MEMORY = 1_000_000_000


def verdicts(results: Results) -> Iterator[Verdict]:
    """Target, what was measured, yes or no; only of experiments that were run."""
    for experiment in results.experiments:
        own = next((each for each in experiment.outcomes if each.name == "tamias"), None)
        if own is not None and own.score is not None:
            yield from of_experiment(experiment, own, own.score.recall)
    for scale in results.scale:
        flatness = scale.first.flatness
        yield said(
            "scale: pages/s in the last tenth at least 0.9 of the second", f"{flatness:.2f}", flatness >= 0.9
        )


def of_experiment(experiment: DataWebExperiment, own: TrialOutcome, recall: float) -> Iterator[Verdict]:
    """What is asked of Tamias in one experiment."""
    match experiment.name:
        case "I":
            yield said("I: micro recall at least 0.999", f"{recall:.4f}", recall >= 0.999)
        case "II":
            rate, memory = own.resources_per_second, own.measured.peak_bytes
            yield said("II: recall 1.00", f"{recall:.4f}", recall == 1.0)
            yield said("II: at least 400 resources/s", f"{rate:.0f}", rate >= 400)
            yield said("II: under 1 GB in total", f"{memory / 1e6:.0f} MB", memory < MEMORY)
            yield from beside(experiment, own)
        case "robots":
            kept = own.account.manners
            yield said(
                "robots: nothing forbidden asked for",
                str(kept.disallowed_requested),
                not kept.disallowed_requested,
            )
            if kept.fulfilment:
                mean = kept.fulfilment[0]
                yield said("robots: delay fulfilment 1.0 to 1.2", f"{mean:.3f}", 1.0 <= mean <= 1.2)
        case "kinds" | "recrawl":
            last = experiment.again[-1] if experiment.again else own
            found = last.score.recall if last.score else 0.0
            yield said(f"{experiment.name}: recall 1.00", f"{found:.4f}", found == 1.0)


def beside(experiment: DataWebExperiment, own: TrialOutcome) -> Iterator[Verdict]:
    """The best of the peers that read RDF and follow its links to the end."""
    peers = [each for each in experiment.outcomes if each is not own and each.follows_rdf and whole(each)]
    if peers:
        best = max(peers, key=lambda each: each.resources_per_cpu_second)
        ratio = own.resources_per_cpu_second / best.resources_per_cpu_second
        target = f"II: 5 times the resources per CPU-second of the best such peer ({best.name})"
        yield said(target, f"{ratio:.1f}", ratio >= 5)


def whole(outcome: TrialOutcome) -> bool:
    """Whether it found nearly everything, so that its pace counts."""
    return outcome.score is not None and outcome.score.recall > 0.9


def said(target: str, measured: str, reached: bool) -> Verdict:
    """A line of the table."""
    return target, measured, "yes" if reached else "**no**"
