package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// recordFolder is where the texts of records lie.
const recordFolder = "memory/"

// exportRecords writes what the agent remembers: each record as a line and its text
// as a file, and what it was before it changed.
func (e *exporter) exportRecords(ctx context.Context) error {
	for r, err := range record.All(ctx, e.engine, e.scope) {
		if err != nil {
			return err
		}
		if e.session != "" && r.SessionID != e.session {
			continue
		}
		if err := e.exportRecord(r); err != nil {
			return err
		}
	}
	for r, err := range record.EarlierVersions(ctx, e.engine, e.scope) {
		if err != nil {
			return err
		}
		if e.session != "" && r.SessionID != e.session {
			continue
		}
		e.versions++
		e.progress()
		if err := e.versionLines.addObject(recordDocument(r)); err != nil {
			return err
		}
	}
	return nil
}

func (e *exporter) exportRecord(r record.Record) error {
	name := recordFolder + r.ID + ".txt"
	err := e.files.write(name, []byte(r.Text))
	if errors.Is(err, errBadName) { // ids may have any letters
		sum := sha256.Sum256([]byte(r.ID))
		name = recordFolder + renamedFolder + hex.EncodeToString(sum[:]) + ".txt"
		err = e.files.write(name, []byte(r.Text))
	}
	if err != nil {
		return err
	}
	document := recordDocument(r)
	document["file"] = name
	e.records++
	e.progress()
	return e.recordLines.addObject(document)
}

// recordDocument is all that is known of a record but its vector.
func recordDocument(r record.Record) map[string]any {
	document := map[string]any{
		"id": r.ID, "text": r.Text, "kind": r.Kind, "importance": r.Importance, "origin": r.Origin.String(), "tier": r.Tier, "version": r.Version,
	}
	for name, text := range map[string]string{
		"key": r.Key, "session_id": r.SessionID, "author": r.Author, "supersedes": r.Supersedes, "superseded_by": r.SupersededBy,
	} {
		if text != "" {
			document[name] = text
		}
	}
	for name, at := range map[string]time.Time{
		"event_time": r.EventTime, "create_time": r.CreateTime, "update_time": r.UpdateTime, "expire_time": r.ExpireTime, "superseded_time": r.SupersededTime,
	} {
		if !at.IsZero() {
			document[name] = at.UTC().Format(time.RFC3339Nano)
		}
	}
	for name, set := range map[string]bool{"pinned": r.Pinned, "archived": r.Archived} {
		if set {
			document[name] = true
		}
	}
	if len(r.Tags) > 0 {
		document["tags"] = r.Tags
	}
	if len(r.DerivedFrom) > 0 {
		document["derived_from"] = r.DerivedFrom
	}
	if len(r.Metadata) > 0 {
		document["metadata"] = r.Metadata
	}
	if r.SlidingTTL > 0 {
		document["sliding_ttl"] = r.SlidingTTL.String()
	}
	return document
}

// ownEvents yields the durable events that the agent emitted, and those of the
// topics that are named after it.
func (e *exporter) ownEvents(ctx context.Context) iter.Seq2[events.Event, error] {
	own := "agent." + e.scope.Owner
	return func(yield func(events.Event, error) bool) {
		for event, err := range e.events.All(ctx, e.scope.Tenant) {
			if err != nil {
				yield(events.Event{}, err)
				return
			}
			if event.Source != e.scope.Owner && event.Topic != own && !strings.HasPrefix(event.Topic, own+".") {
				continue
			}
			if e.session == "" || event.SessionID == e.session {
				if !yield(event, nil) {
					return
				}
			}
		}
	}
}

func (e *exporter) exportEvents(ctx context.Context) error {
	for event, err := range e.ownEvents(ctx) {
		if err != nil {
			return err
		}
		e.heard++
		e.progress()
		if err := e.eventLines.addObject(eventDocument(event)); err != nil {
			return err
		}
	}
	return nil
}

// eventDocument is an event; a payload that is no JSON is payload_base64.
func eventDocument(event events.Event) map[string]any {
	document := map[string]any{
		"topic": event.Topic, "sequence": event.Sequence, "id": event.ID, "source": event.Source,
		"time": event.Time.UTC().Format(time.RFC3339Nano),
	}
	for name, text := range map[string]string{"session_id": event.SessionID, "type": event.Type} {
		if text != "" {
			document[name] = text
		}
	}
	if len(event.Tags) > 0 {
		document["tags"] = event.Tags
	}
	if len(event.Headers) > 0 {
		document["headers"] = event.Headers
	}
	if event.Priority != 0 {
		document["priority"] = event.Priority
	}
	if event.Confidence != 0 {
		document["confidence"] = event.Confidence
	}
	if event.PayloadKind == events.JSON && json.Valid(event.Payload) {
		document["payload"] = json.RawMessage(event.Payload)
	} else {
		document["payload_base64"] = base64.StdEncoding.EncodeToString(event.Payload)
	}
	return document
}
