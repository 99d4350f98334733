"""Builder: reads sources with their readers into one batch and one report."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from graft_core.errors import InputError
from graft_core.formats.assemble import assemble
from graft_core.formats.assembly import Kept
from graft_core.formats.registry import Format
from graft_core.formats.rows import RECORD_BITS, Rows
from graft_core.formats.source import SEVERAL_ROWS, Source
from graft_core.rollouts import LoadReport, Rejection, RolloutBatch

SHOWN_REASONS = 3


def build(
    sources: Iterable[tuple[Source, Format]], rows: Rows, name: str, left_out: list[str]
) -> tuple[RolloutBatch, LoadReport]:
    """Read every source with its reader, and assemble what they gave.

    One file after the other, so that only one parsed document is held at a time; `left_out` (sentences on files without a
    reader) fills while `sources` is gone through. Raises `InputError` with the first reasons where no record could be used.
    """
    notes: list[str] = []
    for source, reader in sources:
        rows.start(source, reader.name, reader.unit)
        source.tell(0)
        source.settle()
        if source.head.cleaned:
            rows.warn("surrogates_replaced", "broken characters were escaped", source.name)
        if source.head.repeated:
            sentence = "an object of the file has a key twice; the last value was used"
            rows.warn("keys_repeated", sentence, source.name, source.head.repeated)
        try:
            reader.read(source, rows)
        except InputError as error:
            if source.named:
                raise
            rows.warn("file_skipped", "no reader knows a file of the directory, or it could not be used", source.name)
            notes.append(str(error))
        source.forget()
    batch, kept = assemble(rows, name)
    report = make_report(rows, kept, (*left_out, *notes, *rows.notes))
    if batch.n_rollouts == 0 and report.rejected:
        reasons = "; ".join(f"{r.where}: {r.reason}" for r in report.rejections[:SHOWN_REASONS])
        more = f" (and {report.rejected - SHOWN_REASONS} more records)" if report.rejected > SHOWN_REASONS else ""
        raise InputError(f"{name}: none of its {report.read} records can be used: {reasons}{more}")
    return batch, report


def make_report(rows: Rows, kept: Kept, notes: tuple[str, ...]) -> LoadReport:
    """Count records: the rows' distinct (file, record) pairs and those that could not be read at all."""
    file, record = rows.places()
    key = file.astype(np.int64) << RECORD_BITS | record
    by_item = any(f.unit in SEVERAL_ROWS for f in rows.files)
    records = len(np.unique(key)) if by_item else len(key)
    accepted_keys = np.unique(key[kept.row]) if by_item or rows.repaired else key[kept.row]
    accepted = len(accepted_keys)
    repaired = int(np.isin(np.array(sorted(set(rows.repaired)), dtype=np.int64), accepted_keys).sum())
    read = records + sum(f.unreadable for f in rows.files)
    rejections = list(rows.rejections)
    if rows.unlisted:
        rejections.append(Rejection("", "further rejected records, not listed one by one", rows.unlisted))
    return LoadReport(
        files=tuple(f.source.name for f in rows.files),
        formats=tuple(f.format for f in rows.files),
        read=read,
        accepted=accepted,
        repaired=repaired,
        rejected=read - accepted,
        rejections=tuple(rejections),
        warnings=rows.warnings,
        notes=notes,
    )
