package record_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/record"
)

// A line of somebody's own hand says what a record holds; the same line is the same record.
func TestLinesOfOnesOwnHand(t *testing.T) {
	parse := func(text string) record.Record {
		t.Helper()
		l, err := record.ParseLine([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return l.Record
	}
	r := parse(`{"text":"Ann likes pears"}`)
	if r.Text != "Ann likes pears" || r.Kind != record.DefaultKind || r.Origin != record.OriginAgent || r.Version != 1 ||
		r.Importance != record.DefaultImportance || r.Tier != record.LongTerm || time.Since(r.CreateTime) > time.Hour {
		t.Errorf("got %+v", r)
	}
	if again := parse(`{"text":"Ann likes pears"}`); again.ID != r.ID {
		t.Errorf("ids %q and %q", r.ID, again.ID)
	}
	own := parse(`{"text":"Ann likes pears","kind":"note","tags":["b","a","b"],"origin":"user","create_time":"2026-01-02T03:04:05Z"}`)
	if own.ID == r.ID || own.Kind != "note" || len(own.Tags) != 2 || own.Origin != record.OriginUser || own.CreateTime.Year() != 2026 {
		t.Errorf("got %+v", own)
	}
	if named := parse(`{"id":"pears","text":"Ann likes pears"}`); named.ID != "pears" || named.Kind != r.Kind || named.Version != 1 {
		t.Errorf("got %+v", named)
	}
	for _, text := range []string{`{}`, `{"text":""}`, `{"text":"x","txt":"y"}`, `{"text":"x","origin":"god"}`, `{"id":"a","text":"x","version":3}`, `{"text":"x","version":3}`} {
		if _, err := record.ParseLine([]byte(text)); err == nil || errors.Is(err, record.ErrDamaged) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{`{}`, `{"text":""}`, `{"text":"","kind":"note"}`} {
		if _, err := record.ParseLine([]byte(text)); err == nil || !strings.Contains(err.Error(), "text is empty") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
