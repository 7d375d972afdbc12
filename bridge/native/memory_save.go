package native

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject/playbook"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/writer"
)

func (m memories) save(ctx context.Context, c tools.Input) (tools.Output, error) {
	r := record.Record{
		Text: c.String("text", ""), Kind: c.String("kind", ""), Key: c.String("key", ""), SessionID: c.SessionID,
		Supersedes: c.String("supersedes", ""), Importance: record.DefaultImportance,
	}
	if weight, ok := c.Args["importance"].(json.Number); ok {
		r.Importance, _ = weight.Float64() // the schema says that it is one
	}
	if metadata, ok := c.Args["metadata"].(map[string]any); ok {
		r.Metadata = text.CanonicalJSON(metadata)
	}
	if tags, ok := c.Args["tags"].([]any); ok {
		for _, tag := range tags {
			s, _ := tag.(string)
			r.Tags = append(r.Tags, s)
		}
	}
	if err := checkSaved(&r); err != nil {
		return tools.Output{}, err
	}
	saved, err := m.memory.Save(writer.As(ctx, writer.Model), c.Scope, r)
	if err != nil {
		return tools.Output{}, memoryFailure(err)
	}
	out := map[string]any{"id": saved.ID, "created_at": timeText(saved.CreateTime)}
	if saved.Key != "" {
		out["key"] = saved.Key
	}
	if saved.Review == record.ReviewHeld {
		out["review"], out["note"] = "held", "A person reviews records of this origin first: no query finds it until they approve it."
	}
	return tools.Output{Values: out}, nil
}

// checkSaved refuses what would speak to the model as its instructions. A model, or a page
// that it read, must not write those.
func checkSaved(r *record.Record) error {
	switch strings.ToLower(strings.TrimSpace(r.Kind)) {
	case settings.SkillKind:
		return refuse("kind", "is skill: skills are instructions, so only the agent's program saves them")
	case playbook.Kind:
		if entry, err := playbook.Parse(r.Text, r.Metadata); err == nil && entry.Status == playbook.Approved {
			return refuse("metadata.status", "is approved: only the agent's program approves playbooks")
		}
	}
	return nil
}

// memoryFailure says for the model what went wrong with memory.
func memoryFailure(err error) error {
	if bad, ok := errors.AsType[*invalid.Error](err); ok {
		return refuse(bad.Field, bad.Problem)
	}
	if taken, ok := errors.AsType[*memory.ExistsError](err); ok {
		return wrapped(tools.Failed, "The "+taken.Field+" is taken by record "+taken.ID+"; supersede that one, or choose another "+taken.Field, err)
	}
	if missing, ok := errors.AsType[*memory.NotFoundError](err); ok {
		return wrapped(tools.NotFound, "Record not found: "+missing.Name, err)
	}
	switch {
	case errors.Is(err, memory.ErrInstructs):
		return wrapped(tools.PermissionDenied, "The record is an instruction of the agent's program, which only its program changes", err)
	case errors.Is(err, session.ErrTaskNotFound):
		return wrapped(tools.NotFound, "Task not found in the session", err)
	case errors.Is(err, kv.ErrLimit):
		return wrapped(tools.TooLarge, "Too large for one record: "+err.Error(), err)
	}
	return err
}

// anys are texts as JSON values.
func anys(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}

// number is a number as a JSON value.
func number(x float64) json.Number { return json.Number(strconv.FormatFloat(x, 'f', -1, 64)) }

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
