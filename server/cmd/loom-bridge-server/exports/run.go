package exports

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/context/export"
	texts "github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

const (
	// recordFolder is where the texts of records lie.
	recordFolder = "memory/"
	// progressItems is how many items are exported between two lines about it.
	progressItems = 1000
	// progressBytes is how many bytes are.
	progressBytes = 256 << 20
)

// exporter writes one agent's files.
type exporter struct {
	*request
	engine  kv.Reader
	context export.Selection
	events  *events.Bus
	files   *export.Tree

	counts                     export.Counts
	records, versions, emitted int
	calls                      int // records of the audit
	damaged                    *export.Lines
	reported                   int   // items at the last report of progress
	reportedBytes              int64 // and bytes
}

// write writes everything: the context, then what the agent remembers, then its events.
func (e *exporter) write(ctx context.Context) (err error) {
	records, versions, emitted := e.files.Lines("records.jsonl"), e.files.Lines("versions.jsonl"), e.files.Lines("events.jsonl")
	audited := e.files.Lines("audit.jsonl")
	e.damaged = e.files.Lines("damaged.jsonl")
	e.files.KeepFolders(recordFolder)
	defer func() {
		err = errors.Join(err, records.Close(), versions.Close(), emitted.Close(), audited.Close(), e.damaged.Close())
	}()
	var unsaid error
	e.counts, err = export.Write(ctx, e.files, e.context, export.Observer{
		Progress: func(c export.Counts) {
			e.counts = c
			e.progress()
		},
		Damaged: func(what, name string, err error) { unsaid = errors.Join(unsaid, e.report(what, name, err)) },
	})
	if err = errors.Join(err, unsaid); err != nil {
		return err
	}
	if err := e.exportRecords(ctx, records, versions); err != nil {
		return err
	}
	if err := e.exportAudit(ctx, audited); err != nil {
		return err
	}
	for event, err := range e.ownEvents(ctx) {
		if err == nil {
			e.emitted++
			e.progress()
			err = emitted.AddObject(events.Document(event))
		}
		if err = e.leftOut("event", fmt.Sprintf("%s, number %d", event.Topic, event.Sequence), err); err != nil {
			return err
		}
	}
	return nil
}

// report says of an entry that it is damaged, in the export and to who watches.
func (e *exporter) report(what, name string, err error) error {
	fmt.Fprintf(e.Progress, "%s %q: %v\n", what, name, err)
	return e.damaged.AddObject(map[string]any{"what": what, "name": name, "problem": err.Error()})
}

// leftOut reports a damaged item, so that the export goes on without it; any other error is
// returned.
func (e *exporter) leftOut(what, name string, err error) error {
	if !errors.Is(err, record.ErrDamaged) && !errors.Is(err, audit.ErrDamaged) && !errors.Is(err, events.ErrDamaged) {
		return err
	}
	e.counts.Damaged++
	return e.report(what, name, err)
}

// exportAudit writes the records of the agent's calls.
func (e *exporter) exportAudit(ctx context.Context, lines *export.Lines) error {
	for r, err := range audit.All(ctx, e.engine, e.scope.Tenant) {
		if err != nil {
			if err = e.leftOut("call", fmt.Sprintf("epoch %d, number %d", r.Epoch, r.Number), err); err != nil {
				return err
			}
			continue
		}
		if r.Agent != e.scope.Owner || e.session != "" && r.Session != e.session {
			continue
		}
		e.calls++
		e.progress()
		if err := lines.AddObject(audit.Document(r)); err != nil {
			return err
		}
	}
	return nil
}

// ownEvents yields the events to export.
func (e *exporter) ownEvents(ctx context.Context) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		for event, err := range e.events.OfAgent(ctx, e.scope.Tenant, e.scope.Owner) {
			if err == nil && e.session != "" && event.SessionID != e.session {
				continue
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// exportRecords writes what the agent remembers: each record as a line and its text
// as a file, and what it was before it changed.
func (e *exporter) exportRecords(ctx context.Context, records, versions *export.Lines) error {
	for r, err := range record.All(ctx, e.engine, e.scope) {
		if err == nil && (e.session == "" || r.SessionID == e.session) {
			err = e.exportRecord(r, records)
		}
		if err = e.leftOut("record", r.ID, err); err != nil {
			return err
		}
	}
	for r, err := range record.EarlierVersions(ctx, e.engine, e.scope) {
		if err == nil && (e.session == "" || r.SessionID == e.session) {
			e.versions++
			e.progress()
			err = versions.AddObject(record.Object(r))
		}
		if err = e.leftOut("earlier version", r.ID, err); err != nil {
			return err
		}
	}
	return nil
}

func (e *exporter) exportRecord(r record.Record, records *export.Lines) error {
	name := recordFolder + r.ID + ".txt"
	err := e.files.Write(name, []byte(r.Text))
	if errors.Is(err, export.ErrBadName) { // ids may have any letters
		sum := sha256.Sum256([]byte(r.ID))
		name = recordFolder + export.RenamedFolder + hex.EncodeToString(sum[:]) + ".txt"
		err = e.files.Write(name, []byte(r.Text))
	}
	if err != nil {
		return err
	}
	document := record.Object(r)
	document["file"] = name
	e.records++
	e.progress()
	return records.AddObject(document)
}

// progress reports now and then how far it is.
func (e *exporter) progress() {
	items := e.counts.Steps + e.counts.Messages + e.counts.Results + e.counts.Snapshots + e.records + e.versions + e.emitted + e.calls
	if items-e.reported < progressItems && e.counts.Bytes-e.reportedBytes < progressBytes {
		return
	}
	e.reported, e.reportedBytes = items, e.counts.Bytes
	fmt.Fprintf(e.Progress, "so far: %s\n", e.summary())
}

func (e *exporter) summary() string {
	c := e.counts
	return fmt.Sprintf("%d steps, %d messages, %d folds, %d offloaded results (%s), %d tasks, %d records, %d earlier versions, %d events, %d calls, %d snapshots",
		c.Steps, c.Messages, c.Folds, c.Results, texts.HumanSize(c.Bytes), c.Tasks, e.records, e.versions, e.emitted, e.calls, c.Snapshots)
}
