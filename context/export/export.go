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
	// Results are the offloaded ones, Bytes what they have. Damaged counts the entries of any
	// kind that are left out.
	Results, Damaged int
	Bytes            int64
}

// Observer hears how an export goes on. Both functions are required.
type Observer struct {
	// Progress is called after each step, message and piece of a result.
	Progress func(Counts)
	// Damaged is called for each entry that is left out because it is damaged: what it is,
	// such as "result", and its name, which may have any bytes.
	Damaged func(what, name string, err error)
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

// leftOut reports a damaged item, so that the export goes on without it; any other error is
// returned.
func (w *writer) leftOut(what, name string, err error) error {
	for _, damage := range []error{blob.ErrDamaged, session.ErrDamaged, step.ErrDamaged, history.ErrDamaged} {
		if errors.Is(err, damage) {
			w.counts.Damaged++
			w.Damaged(what, name, err)
			return nil
		}
	}
	return err
}

func (w *writer) writeSession(ctx context.Context, id string) error {
	for entry, err := range w.Log.Entries(ctx, w.Scope, id) {
		switch {
		case err != nil:
		case entry.Step != nil:
			err = w.writeStep(ctx, id, entry)
		case entry.Message != nil:
			err = w.writeMessage(id, entry)
		}
		err = w.leftOut("entry", fmt.Sprintf("%s at %d", id, entry.Position), err)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	folds, err := w.Log.Folds(ctx, w.Scope, id)
	if err = w.leftOut("folds", id, err); err != nil {
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
	for s, err := range w.Log.AllSnapshots(ctx, w.Scope, id) {
		if err == nil {
			err = w.writeSnapshot(id, &s)
		}
		if err = w.leftOut("snapshot", fmt.Sprintf("%s in sprint %d", id, s.Sprint), err); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) writeSnapshot(id string, s *working.Snapshot) error {
	base := fmt.Sprintf("%s%s/sprint_%03d", SnapshotFolder, folderOf(id), s.Sprint)
	if err := w.tree.Write(base+".json", working.SnapshotDocument(s, id)); err != nil {
		return err
	}
	w.counts.Snapshots++
	w.progress()
	return w.tree.Write(base+".md", []byte(s.Handoff()+"\n"))
}

func (w *writer) writeTasks(ctx context.Context, sessionID string) error {
	for t, err := range w.Log.AllTasks(ctx, w.Scope, sessionID) {
		if err == nil {
			w.counts.Tasks++
			err = w.tasks.Add(session.TaskDocument(t))
		}
		if err = w.leftOut("task", fmt.Sprintf("%s, number %d", sessionID, t.Number), err); err != nil {
			return err
		}
	}
	return nil
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
