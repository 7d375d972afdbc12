package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// RenamedFolder is where files lie whose own names the file system does not take.
const RenamedFolder = "renamed/"

// Selection is the part of an agent's context that is exported, and where it is read.
type Selection struct {
	Log   *session.Log
	Blobs *blob.Store
	Scope kv.Scope
	// Session is the one session to export; empty for all.
	Session string
	// Lines make the one-line files of steps.
	Lines step.Templates
}

// Counts counts the written entries so far.
type Counts struct {
	Steps, Messages, Folds, Tasks, Snapshots int
	// Results are the offloaded ones, Bytes what they have, Damaged those left out.
	Results, Damaged int
	Bytes            int64
}

// Observer hears how an export goes on. Both functions are required.
type Observer struct {
	// Progress is called after each step, message and piece of a result.
	Progress func(Counts)
	// Damaged is called for each offloaded result that is left out. The path may have
	// any bytes.
	Damaged func(path string, err error)
}

// Write writes the context of a source into a tree. No blob takes the name of a file that
// [Tree.Lines] has given out, or of a folder of [Tree.KeepFolders].
func Write(ctx context.Context, to *Tree, from Selection, observer Observer) (c Counts, err error) {
	to.KeepFolders(RenamedFolder, SnapshotFolder)
	w := &writer{
		Selection: from, Observer: observer, tree: to, exported: make(map[string]bool),
		steps: to.Lines("steps.jsonl"), messages: to.Lines("messages.jsonl"), folds: to.Lines("folds.jsonl"),
		tasks: to.Lines("tasks.jsonl"), blobs: to.Lines("blobs.jsonl"),
	}
	defer func() {
		for _, file := range []*Lines{w.steps, w.messages, w.folds, w.tasks, w.blobs} {
			err = errors.Join(err, file.Close())
		}
	}()
	err = w.write(ctx)
	return w.counts, err
}

// writer writes one agent's files.
type writer struct {
	Selection
	Observer
	tree   *Tree
	counts Counts

	steps, messages, folds, tasks, blobs *Lines
	// exported are the homes of the blobs that one session's export has.
	exported map[string]bool
}

func (w *writer) write(ctx context.Context) error {
	if w.Session != "" {
		if err := w.writeSession(ctx, w.Session); err != nil {
			return err
		}
		if err := w.writeTasks(ctx, w.Session); err != nil {
			return err
		}
		return w.writeBlobs(ctx)
	}
	for id, err := range w.Log.Sessions(ctx, w.Scope, "") {
		if err == nil {
			err = w.writeSession(ctx, id)
		}
		if err != nil {
			return err
		}
	}
	for id, err := range w.Log.TaskSessions(ctx, w.Scope, "") {
		if err == nil {
			err = w.writeTasks(ctx, id)
		}
		if err != nil {
			return err
		}
	}
	return w.writeBlobs(ctx)
}

func (w *writer) progress() { w.Progress(w.counts) }

func (w *writer) writeSession(ctx context.Context, id string) error {
	for entry, err := range w.Log.Entries(ctx, w.Scope, id) {
		switch {
		case err != nil:
		case entry.Step != nil:
			err = w.writeStep(ctx, id, entry)
		case entry.Message != nil:
			err = w.writeMessage(id, entry)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	folds, err := w.Log.Folds(ctx, w.Scope, id)
	if err != nil {
		return err
	}
	for _, f := range folds.Live {
		if err := w.writeFold(id, f); err != nil {
			return err
		}
	}
	return w.writeSnapshots(ctx, id)
}

// SnapshotFolder is where the snapshots of a session's renewals lie.
const SnapshotFolder = "snapshots/"

// maxFolderBytes bounds a folder that is called like a session.
const maxFolderBytes = 120

// folderOf is the name of a session as one folder: a hash where it has other letters than
// every file system takes, or too many.
func folderOf(session string) string {
	plain := func(r rune) bool {
		return r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	if len(session) <= maxFolderBytes && strings.IndexFunc(session, func(r rune) bool { return !plain(r) }) < 0 {
		return session
	}
	sum := sha256.Sum256([]byte(session))
	return "session-" + hex.EncodeToString(sum[:16])
}

// writeSnapshots writes what the agent was at when the session's window was renewed.
func (w *writer) writeSnapshots(ctx context.Context, id string) error {
	for after := 0; ; {
		page, err := w.Log.Snapshots(ctx, w.Scope, id, after, 0)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			s := &page[i]
			base := fmt.Sprintf("%s%s/sprint_%03d", SnapshotFolder, folderOf(id), s.Sprint)
			if err := w.tree.Write(base+".json", working.SnapshotDocument(s, id)); err != nil {
				return err
			}
			if err := w.tree.Write(base+".md", []byte(s.Handoff()+"\n")); err != nil {
				return err
			}
			w.counts.Snapshots++
			w.progress()
			after = s.Sprint
		}
	}
}

func (w *writer) writeTasks(ctx context.Context, sessionID string) error {
	for after := uint64(0); ; {
		tasks, err := w.Log.TasksAfter(ctx, w.Scope, sessionID, after, 0)
		if err != nil || len(tasks) == 0 {
			return err
		}
		for _, t := range tasks {
			if err := w.tasks.Add(session.TaskDocument(t)); err != nil {
				return err
			}
			w.counts.Tasks++
			after = t.Number
		}
	}
}

func (w *writer) writeStep(ctx context.Context, sessionID string, entry session.Entry) error {
	s := *entry.Step
	line := w.Lines.Compact(s).Summary
	if s.ArgsPath != "" { // they were too long for the log
		args, err := w.whole(ctx, s.ArgsPath)
		if err != nil {
			return err
		}
		if args != nil {
			s.Args = args
		}
	}
	base := session.HistoryFolder + s.ID()
	if err := w.tree.Write(base+".json", step.Document(s)); err != nil {
		return err
	}
	if err := w.tree.Write(base+".compact", []byte(line)); err != nil {
		return err
	}
	if err := w.writeGiven(ctx, s, base+".original"); err != nil {
		return err
	}
	w.counts.Steps++
	w.progress()
	return w.steps.Add(text.CanonicalJSON(map[string]any{
		"id": s.ID(), "session_id": sessionID, "position": entry.Position, "compact": line, "outcome_path": s.OutcomePath,
	}))
}

// writeGiven writes the result of a step as it was given, where no other file has
// it. One that can't be made any more is left out.
func (w *writer) writeGiven(ctx context.Context, s step.Step, name string) error {
	data := s.Given.Data
	switch s.Given.Source {
	default:
		return nil
	case step.SourceStep:
	case step.SourceFrame:
		given, err := w.whole(ctx, s.OutcomePath)
		if err != nil || given == nil {
			return err
		}
		if data, err = step.Unframe(data, given); err != nil {
			return err
		}
	}
	return w.tree.Write(name, data)
}

func (w *writer) writeMessage(sessionID string, entry session.Entry) error {
	value, err := text.DecodeJSON(session.Document(entry))
	if err != nil {
		return err
	}
	if object, ok := value.(map[string]any); ok {
		object["session_id"] = sessionID
	}
	w.counts.Messages++
	w.progress()
	return w.messages.Add(text.CanonicalJSON(value))
}

func (w *writer) writeFold(sessionID string, f history.Fold) error {
	spans := make([]any, len(f.Spans))
	for i, span := range f.Spans {
		spans[i] = map[string]any{"first": span.First, "last": span.Last}
	}
	w.counts.Folds++
	return w.folds.Add(text.CanonicalJSON(map[string]any{
		"session_id": sessionID, "batch": f.Batch, "policy": f.Policy, "level": f.Level, "text": f.Text,
		"spans": spans, "refs": list(f.Refs), "reason": f.Reason.String(), "through": f.Through, "seen": f.Seen,
		"tokens": f.Tokens, "before": f.Before, "original": f.Original, "turns": f.Turns, "calls": f.Calls,
	}))
}

// list is what canonical JSON takes for a list of texts.
func list(texts []string) []any {
	all := make([]any, len(texts))
	for i, one := range texts {
		all[i] = one
	}
	return all
}
