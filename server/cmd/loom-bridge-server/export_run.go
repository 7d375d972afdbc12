package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	texts "github.com/loom-bridge/loom-bridge/context/text"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// historyFolder is where the steps of an export lie.
	historyFolder = "workspace/history/"
	// renamedFolder is where blobs lie whose paths are no names of files.
	renamedFolder = "renamed/"
	// progressItems is how many items are exported between two lines about it.
	progressItems = 1000
	// progressBytes is how many bytes are.
	progressBytes = 256 << 20
	// tagLogEntry marks the entries of sessions (memory/FORMAT.md, final).
	tagLogEntry = 'e'
	// tagLogTask marks their tasks.
	tagLogTask = 't'
)

// exporter writes one agent's files.
type exporter struct {
	exportRequest
	engine kv.Reader
	log    *session.Log
	blobs  *blob.Store
	events *events.Bus
	files  *fileTree
	stderr io.Writer
	// lines make the one-line files of steps.
	lines step.Templates

	steps, messages, folds, results, tasks int
	records, versions, heard               int
	bytes                                  int64
	damaged                                int
	reported                               int   // items when progress was last told
	reportedBytes                          int64 // and bytes

	stepLines, messageLines, foldLines, taskLines, blobLines lineFile
	recordLines, versionLines, eventLines                    lineFile
	// written are the homes of the blobs that one session's export has.
	written map[string]bool
}

// run writes everything. Files of its own come first, so that no blob takes
// their names.
func (e *exporter) run(ctx context.Context) (err error) {
	e.stepLines = lineFile{tree: e.files, name: "steps.jsonl"}
	e.messageLines = lineFile{tree: e.files, name: "messages.jsonl"}
	e.foldLines = lineFile{tree: e.files, name: "folds.jsonl"}
	e.taskLines = lineFile{tree: e.files, name: "tasks.jsonl"}
	e.blobLines = lineFile{tree: e.files, name: "blobs.jsonl"}
	e.recordLines = lineFile{tree: e.files, name: "records.jsonl"}
	e.versionLines = lineFile{tree: e.files, name: "versions.jsonl"}
	e.eventLines = lineFile{tree: e.files, name: "events.jsonl"}
	e.written = make(map[string]bool)
	defer func() {
		for _, file := range []*lineFile{&e.stepLines, &e.messageLines, &e.foldLines, &e.taskLines, &e.blobLines, &e.recordLines, &e.versionLines, &e.eventLines} {
			err = errors.Join(err, file.Close())
		}
	}()
	for id, err := range e.sessions(ctx, tagLogEntry) {
		if err == nil {
			err = e.exportSession(ctx, id)
		}
		if err != nil {
			return err
		}
	}
	for id, err := range e.sessions(ctx, tagLogTask) {
		if err == nil {
			err = e.exportTasks(ctx, id)
		}
		if err != nil {
			return err
		}
	}
	for found, err := range e.entries(ctx) {
		if err == nil {
			err = e.exportBlob(ctx, found)
		}
		if err != nil {
			return err
		}
	}
	if err := e.exportReferred(ctx); err != nil {
		return err
	}
	if err := e.exportRecords(ctx); err != nil {
		return err
	}
	return e.exportEvents(ctx)
}

// sessions yields the ids of the sessions to export that have anything under a tag.
func (e *exporter) sessions(ctx context.Context, tag byte) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if e.session != "" {
			yield(e.session, nil)
			return
		}
		all := kv.Prefix(e.scope.Key(tag))
		prefix := len(all.Start)
		for found := true; found; {
			found = false
			for pair, err := range e.engine.Scan(ctx, kv.Log, kv.Range{Start: all.Start, End: all.End, Limit: 1}) {
				if err != nil {
					yield("", err)
					return
				}
				id, _, err := kv.CutEscaped(pair.Key[prefix:])
				if !yield(id, err) || err != nil {
					return
				}
				all.Start, found = kv.After(kv.AppendEscaped(e.scope.Key(tag), id)), true
			}
		}
	}
}

func (e *exporter) exportSession(ctx context.Context, id string) error {
	for entry, err := range e.log.Entries(ctx, e.scope, id) {
		switch {
		case err != nil:
		case entry.Step != nil:
			err = e.exportStep(ctx, id, entry)
		case entry.Message != nil:
			err = e.exportMessage(id, entry)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	folds, err := e.log.Folds(ctx, e.scope, id)
	if err != nil {
		return err
	}
	for _, f := range folds.Live {
		if err := e.exportFold(id, f); err != nil {
			return err
		}
	}
	return nil
}

func (e *exporter) exportTasks(ctx context.Context, sessionID string) error {
	for after := uint64(0); ; {
		tasks, err := e.log.TasksAfter(ctx, e.scope, sessionID, after, 0)
		if err != nil || len(tasks) == 0 {
			return err
		}
		for _, t := range tasks {
			if err := e.taskLines.add(session.TaskDocument(t)); err != nil {
				return err
			}
			e.tasks++
			after = t.Number
		}
	}
}

func (e *exporter) exportStep(ctx context.Context, sessionID string, entry session.Entry) error {
	s := *entry.Step
	line := e.lines.Compact(s).Summary
	args, err := e.longArgs(ctx, s.ArgsPath)
	if err != nil {
		return err
	}
	if args != nil {
		s.Args = args
	}
	if err := e.files.write(historyFolder+s.ID()+".json", step.Document(s)); err != nil {
		return err
	}
	if err := e.files.write(historyFolder+s.ID()+".compact", []byte(line)); err != nil {
		return err
	}
	if err := e.exportGiven(ctx, s); err != nil {
		return err
	}
	e.steps++
	e.progress()
	return e.stepLines.add(texts.CanonicalJSON(map[string]any{
		"id": s.ID(), "session_id": sessionID, "position": entry.Position, "compact": line, "outcome_path": s.OutcomePath,
	}))
}

// exportGiven writes the result of a step as it was given, where no other file has
// it. One that can't be made any more is left out.
func (e *exporter) exportGiven(ctx context.Context, s step.Step) error {
	data := s.Given.Data
	switch s.Given.Source {
	default:
		return nil
	case step.SourceStep:
	case step.SourceFrame:
		text, err := e.whole(ctx, s.OutcomePath)
		if err != nil || text == nil {
			return err
		}
		if data, err = step.Unframe(data, text); err != nil {
			return err
		}
	}
	return e.files.write(historyFolder+s.ID()+".original", data)
}

// longArgs returns the arguments of a step that were too long for the log, nil
// when there are none any more.
func (e *exporter) longArgs(ctx context.Context, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	return e.whole(ctx, path)
}

// whole returns all of a blob, nil when there is none any more. A damaged one is
// told with its blob.
func (e *exporter) whole(ctx context.Context, path string) ([]byte, error) {
	found, err := e.blobs.Lookup(ctx, e.scope, path)
	var all bytes.Buffer
	if err == nil {
		for piece, readErr := range e.blobs.Read(ctx, e.scope, found, 0, -1) {
			all.Write(piece)
			err = readErr
		}
	}
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrDamaged) {
		return nil, nil
	}
	return all.Bytes(), err
}

func (e *exporter) exportMessage(sessionID string, entry session.Entry) error {
	value, err := texts.DecodeJSON(session.Document(entry))
	if err != nil {
		return err
	}
	if object, ok := value.(map[string]any); ok {
		object["session_id"] = sessionID
	}
	e.messages++
	e.progress()
	return e.messageLines.add(texts.CanonicalJSON(value))
}

func (e *exporter) exportFold(sessionID string, f history.Fold) error {
	spans := make([]any, len(f.Spans))
	for i, span := range f.Spans {
		spans[i] = map[string]any{"first": span.First, "last": span.Last}
	}
	e.folds++
	return e.foldLines.add(texts.CanonicalJSON(map[string]any{
		"session_id": sessionID, "batch": f.Batch, "policy": f.Policy, "level": f.Level, "text": f.Text,
		"spans": spans, "refs": list(f.Refs), "reason": f.Reason.String(), "through": f.Through, "seen": f.Seen,
		"tokens": f.Tokens, "before": f.Before, "original": f.Original, "turns": f.Turns, "calls": f.Calls,
	}))
}

// entries yields the blobs to export.
func (e *exporter) entries(ctx context.Context) iter.Seq2[blob.Entry, error] {
	return func(yield func(blob.Entry, error) bool) {
		for after := ""; ; {
			page, err := e.blobs.List(ctx, e.scope, blob.Filter{SessionID: e.session}, after, 0)
			if err != nil {
				yield(blob.Entry{}, err)
				return
			}
			for _, found := range page.Entries {
				if !yield(found, nil) {
					return
				}
			}
			if after = page.Next; after == "" {
				return
			}
		}
	}
}

// exportReferred writes the blobs of other sessions that the session's steps
// refer to.
func (e *exporter) exportReferred(ctx context.Context) error {
	if e.session == "" {
		return nil
	}
	for entry, err := range e.log.Entries(ctx, e.scope, e.session) {
		if err != nil {
			return err
		}
		if entry.Step == nil || entry.Step.OutcomeRef == "" {
			continue
		}
		found, err := e.blobs.Lookup(ctx, e.scope, entry.Step.OutcomePath)
		if errors.Is(err, blob.ErrNotFound) {
			continue // it has expired
		}
		if err == nil && !e.written[found.Home()] {
			err = e.exportBlob(ctx, found)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// exportBlob writes a blob under all its paths. One that is damaged is told and
// left out.
func (e *exporter) exportBlob(ctx context.Context, found blob.Entry) error {
	home := found.Home()
	if e.session != "" {
		e.written[home] = true
	}
	name := home
	file, err := e.files.create(name)
	if errors.Is(err, errBadName) {
		name = renamedFolder + found.Ref
		if file, err = e.files.create(name); errors.Is(err, errBadName) && e.files.made[name] {
			return e.describe(found, []string{name}) // the same bytes are there already
		}
	}
	if err != nil {
		return err
	}
	err = errors.Join(e.copyBlob(ctx, file, found), file.Close())
	if errors.Is(err, blob.ErrDamaged) {
		e.damaged++
		fmt.Fprintf(e.stderr, "%q: %v\n", home, err) // a path may have any bytes
		return e.files.discard(name)
	}
	if err != nil {
		return err
	}
	names, err := e.linkAll(ctx, found, name)
	if err != nil {
		return err
	}
	return e.describe(found, names)
}

// linkAll gives a blob's file its further names and returns all of them.
func (e *exporter) linkAll(ctx context.Context, found blob.Entry, name string) ([]string, error) {
	names := []string{name}
	for _, further := range append(slices.Clone(found.Aliases), found.Path) {
		if further == found.Home() {
			continue
		}
		err := e.files.link(name, further)
		if err != nil && !errors.Is(err, errBadName) {
			err = e.copyAs(ctx, found, further) // not every file system has links
		}
		if err != nil && !errors.Is(err, errBadName) {
			return nil, err
		}
		if err == nil {
			names = append(names, further)
		}
	}
	return names, nil
}

// copyAs writes a blob's bytes to one more file.
func (e *exporter) copyAs(ctx context.Context, found blob.Entry, name string) error {
	file, err := e.files.create(name)
	if err != nil {
		return err
	}
	return errors.Join(e.copyBlob(ctx, file, found), file.Close())
}

// copyBlob writes a blob's bytes and compares them with its hash.
func (e *exporter) copyBlob(ctx context.Context, to io.Writer, found blob.Entry) error {
	hash := sha256.New()
	for piece, err := range e.blobs.Read(ctx, e.scope, found, 0, -1) {
		if err != nil {
			return err
		}
		hash.Write(piece)
		if _, err := to.Write(piece); err != nil {
			return err
		}
		e.bytes += int64(len(piece))
		e.progress()
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != found.Ref {
		return &blob.DamagedError{Ref: found.Ref, Chunk: blob.WholeBlob, Problem: "the bytes have the hash " + got}
	}
	return nil
}

func (e *exporter) describe(found blob.Entry, names []string) error {
	e.results++
	e.progress()
	return e.blobLines.add(texts.CanonicalJSON(map[string]any{
		"path": found.Path, "ref": found.Ref, "size": found.Size, "kind": found.Kind, "category": found.Category,
		"step_id": found.StepID, "session_id": found.SessionID, "time": found.Time.UTC().Format(time.RFC3339Nano),
		"files": list(names),
	}))
}

// list is what canonical JSON takes for a list of texts.
func list(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}

// progress tells now and then how far it is.
func (e *exporter) progress() {
	items := e.steps + e.messages + e.results + e.records + e.versions + e.heard
	if items-e.reported < progressItems && e.bytes-e.reportedBytes < progressBytes {
		return
	}
	e.reported, e.reportedBytes = items, e.bytes
	fmt.Fprintf(e.stderr, "so far: %s\n", e.summary())
}

func (e *exporter) summary() string {
	return fmt.Sprintf("%d steps, %d messages, %d folds, %d offloaded results (%s), %d tasks, %d records, %d earlier versions, %d events",
		e.steps, e.messages, e.folds, e.results, texts.HumanSize(e.bytes), e.tasks, e.records, e.versions, e.heard)
}
