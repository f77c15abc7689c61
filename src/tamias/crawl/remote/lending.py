"""Lends hosts to workers without a database, each in the name of the worker that asked."""

from collections.abc import Sequence

import msgspec

from tamias.crawl.commit.link_put import CommitContext
from tamias.crawl.plan.admit import open_frontier
from tamias.crawl.plan.policy import CrawlRow, terms_of
from tamias.crawl.revisit.visit_budget import budget_of
from tamias.crawl.visit.harvesting import harvesters
from tamias.frontier.lease_filter import Interest, LeaseFilter
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.service.state import is_active
from tamias.model.kind import kind_tag
from tamias.model.lease import Lease
from tamias.settings import Settings

_MOST_WORKERS = 1000


class Lender:
    """For the database's thread. The worker's number is in the tokens, so its leases can be given back."""

    def __init__(self, context: CommitContext, crawl: int, lease_filter: LeaseFilter) -> None:
        self._context = context
        self._row = CrawlRow(context.session, crawl)
        self._lease_filter = lending_terms(lease_filter, context.settings, crawl)
        self._budget = budget_of(context.session, context.settings, self._lease_filter)
        self._frontiers: dict[int, PostgresFrontier] = {}

    def lease(self, worker: int, hosts: int, per_host: int, seconds: float) -> Sequence[Lease]:
        """Hosts with due URLs that such a worker can visit; none while service or crawl are not active."""
        self._row.has_changed()
        if not self._row.is_active or not self._context.session.transact(is_active):
            return []
        self._context.admission.forgotten.refresh(self._context.session)
        leases = self._budget.lease(self._frontier(worker), hosts, per_host, seconds)
        self._context.coverage.refresh()
        return leases

    def _frontier(self, worker: int) -> PostgresFrontier:
        if len(self._frontiers) > _MOST_WORKERS:
            self._frontiers.clear()
        found = self._frontiers.get(worker)
        if found is None:
            context = self._context
            found = open_frontier(context.session, context.settings, worker, self._lease_filter)
            self._frontiers[worker] = found
        return found


def lending_terms(lease_filter: LeaseFilter, settings: Settings, crawl: int) -> LeaseFilter:
    """As the service and the crawl have it, without addresses that are harvested through, or under watch."""
    asked = lease_filter.interest or Interest()
    harvests = [kind_tag(kind) for kind in sorted(harvesters())]
    return msgspec.structs.replace(
        terms_of(settings, crawl),
        crawls=(crawl,),
        interest=Interest(asked.require, (*asked.forbid, *harvests)),
        section=lease_filter.section,
    )
