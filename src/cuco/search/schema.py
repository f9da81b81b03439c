"""The archive's tables. A change of any of them raises ``SCHEMA_VERSION``."""

from __future__ import annotations

SCHEMA_VERSION = 2

#: States an attempt passes, in order. ``terminal`` carries a reason.
STATES = ("assigned", "answered", "patched", "leased", "terminal")

#: Reasons of terminal attempts. The first is success; those of REJECTED are evidence against the candidate.
ACCEPTED = "accepted"
REJECTED = ("compile", "lint", "verify", "measure")
#: Evidence against the infrastructure that candidates of the fast path share, not against a design.
NO_INFRASTRUCTURE = "stage-a"
#: Terminal without having used up an evaluation. ``infrastructure`` is a failure of CUCo's machine.
FREE = (NO_INFRASTRUCTURE, "duplicate", "refused", "infrastructure", "cancelled")
REASONS = (ACCEPTED, *REJECTED, *FREE)

#: From which states each state may be reached.
TRANSITIONS = {
    "answered": ("assigned",),
    "patched": ("answered", "leased"),
    "leased": ("patched",),
    "terminal": ("assigned", "answered", "patched", "leased"),
}

TABLES = f"""
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

-- One row per candidate ever asked for, counted from 0 without gaps. Everything the search policy decided
-- about it (the draw) is written when it is assigned, so a resumed run never decides it again.
CREATE TABLE attempt (
  attempt INTEGER PRIMARY KEY CHECK (attempt >= 0),
  id TEXT NOT NULL UNIQUE,
  operator TEXT NOT NULL,
  island INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  parents TEXT NOT NULL,
  directives TEXT NOT NULL,
  label TEXT NOT NULL DEFAULT '',
  state TEXT NOT NULL CHECK (state IN {STATES}),
  stage TEXT NOT NULL DEFAULT '',
  reason TEXT CHECK (reason IS NULL OR reason IN {REASONS}),
  detail TEXT NOT NULL DEFAULT '',
  answer_sha256 TEXT,
  cost_usd REAL NOT NULL DEFAULT 0 CHECK (cost_usd >= 0),
  leases INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  CHECK ((state = 'terminal') = (reason IS NOT NULL)),
  CHECK (answer_sha256 IS NOT NULL OR state IN ('assigned', 'terminal'))
) STRICT;
CREATE INDEX attempt_state ON attempt (state);

-- What was written for an attempt, once its answer has been turned into sources.
CREATE TABLE candidate (
  id TEXT PRIMARY KEY REFERENCES attempt (id),
  directives TEXT NOT NULL,
  lineage TEXT NOT NULL,
  rationale TEXT NOT NULL,
  source_sha256 TEXT NOT NULL,
  vector BLOB NOT NULL,
  novelty REAL NOT NULL
) STRICT;
CREATE INDEX candidate_source ON candidate (source_sha256);

-- One verdict per candidate and effort. ``data`` is the whole of it as JSON. What is accepted by the stage
-- ``measure`` has a time; stage A of the fast path is verified only.
CREATE TABLE verdict (
  id TEXT NOT NULL REFERENCES attempt (id),
  effort TEXT NOT NULL,
  accepted INTEGER NOT NULL CHECK (accepted IN (0, 1)),
  stage TEXT NOT NULL,
  us REAL CHECK (us IS NULL OR us > 0),
  data TEXT NOT NULL,
  PRIMARY KEY (id, effort),
  CHECK (accepted = 0 OR us IS NOT NULL OR stage = 'verify')
) STRICT;

-- What happened when; for people and reports, never read back to decide anything.
CREATE TABLE event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  kind TEXT NOT NULL,
  attempt INTEGER,
  data TEXT NOT NULL
) STRICT;

-- One row per process that worked on this run; the time budget is the sum of their lengths.
CREATE TABLE session (
  session INTEGER PRIMARY KEY AUTOINCREMENT,
  started REAL NOT NULL,
  seen REAL NOT NULL
) STRICT;
"""
