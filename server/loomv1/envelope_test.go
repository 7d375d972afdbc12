package loomv1

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stampTime is when the events of these tests are stamped.
var stampTime = time.UnixMilli(1_772_366_400_000)

// with is the metadata in which nothing but what a test is about is written out.
func with(pairs map[string]string) map[string]string {
	m := map[string]string{"ttl": "16", "hop": "0", "ts": "1772366400000", "loom.topic": "work.new", "sender": ""}
	maps.Copy(m, pairs)
	return m
}

// The third column of the table of envelope keys, row by row.
func TestStamp(t *testing.T) {
	for name, tt := range map[string]struct{ in, want map[string]string }{
		"nothing given": {
			nil,
			with(map[string]string{"thread_id": "e1", "correlation_id": "e1", "reply_to": "thread.e1.reply"}),
		},
		"what the sender gave stays": {
			map[string]string{
				"thread_id": "t", "correlation_id": "c", "sender": "s", "reply_to": "r", "ttl": "3", "hop": "2", "ts": "7", "own": "x",
				"loom.thread_id": "T", "loom.correlation_id": "C", "loom.sender": "S", "loom.reply_to": "R",
			},
			with(map[string]string{
				"thread_id": "t", "correlation_id": "c", "sender": "s", "reply_to": "r", "ttl": "3", "hop": "2", "ts": "7", "own": "x",
				"loom.thread_id": "T", "loom.correlation_id": "C", "loom.sender": "S", "loom.reply_to": "R",
			}),
		},
		"thread of loom-py": {
			map[string]string{"loom.thread_id": "T"},
			with(map[string]string{"loom.thread_id": "T", "thread_id": "T", "correlation_id": "T", "reply_to": "thread.T.reply"}),
		},
		"bare thread": {
			map[string]string{"thread_id": "t"},
			with(map[string]string{"thread_id": "t", "correlation_id": "t", "reply_to": "thread.t.reply"}),
		},
		"request of loom-py: answered at the mailbox, under its own id": {
			map[string]string{"loom.sender": "asker"},
			with(map[string]string{"loom.sender": "asker", "sender": "asker", "thread_id": "e1", "correlation_id": "e1", "reply_to": "agent.asker.replies"}),
		},
		"request of loom-py in a thread: answered under its own id": {
			map[string]string{"loom.sender": "asker", "loom.thread_id": "T"},
			with(map[string]string{
				"loom.sender": "asker", "sender": "asker", "loom.thread_id": "T", "thread_id": "T", "correlation_id": "e1",
				"reply_to": "agent.asker.replies",
			}),
		},
		"request with a bare thread": {
			map[string]string{"loom.sender": "asker", "thread_id": "t"},
			with(map[string]string{"loom.sender": "asker", "sender": "asker", "thread_id": "t", "correlation_id": "t", "reply_to": "agent.asker.replies"}),
		},
		"answer of loom-py": {
			map[string]string{"loom.sender": "teller", "loom.correlation_id": "q1", "loom.thread_id": "T"},
			with(map[string]string{
				"loom.sender": "teller", "sender": "teller", "loom.correlation_id": "q1", "correlation_id": "q1",
				"loom.thread_id": "T", "thread_id": "T", "reply_to": "agent.teller.replies",
			}),
		},
		"reply_to of loom-py wins": {
			map[string]string{"loom.sender": "asker", "loom.reply_to": "elsewhere"},
			with(map[string]string{
				"loom.sender": "asker", "sender": "asker", "thread_id": "e1", "correlation_id": "e1", "loom.reply_to": "elsewhere", "reply_to": "elsewhere",
			}),
		},
		"empty counts as missing": {
			map[string]string{"thread_id": "", "correlation_id": "", "sender": "", "reply_to": "", "ttl": "", "hop": "", "ts": "", "loom.sender": "asker"},
			with(map[string]string{"loom.sender": "asker", "sender": "asker", "thread_id": "e1", "correlation_id": "e1", "reply_to": "agent.asker.replies"}),
		},
		"empty of loom-py counts as missing": {
			map[string]string{"loom.sender": "", "loom.thread_id": "", "loom.correlation_id": "", "loom.reply_to": ""},
			with(map[string]string{
				"loom.sender": "", "loom.thread_id": "", "loom.correlation_id": "", "loom.reply_to": "",
				"thread_id": "e1", "correlation_id": "e1", "reply_to": "thread.e1.reply",
			}),
		},
		"bare sender alone is none": {
			map[string]string{"sender": "s"},
			with(map[string]string{"sender": "s", "thread_id": "e1", "correlation_id": "e1", "reply_to": "thread.e1.reply"}),
		},
		"numbers that are none": {
			map[string]string{"ttl": "soon", "hop": "1.5", "ts": "now", "ttl_ms": "5s", "loom.ttl_ms": "1e3"},
			with(map[string]string{"thread_id": "e1", "correlation_id": "e1", "reply_to": "thread.e1.reply"}),
		},
		"times to live that are numbers": {
			map[string]string{"ttl": "-1", "ttl_ms": "500", "loom.ttl_ms": "0"},
			with(map[string]string{"ttl": "-1", "ttl_ms": "500", "loom.ttl_ms": "0", "thread_id": "e1", "correlation_id": "e1", "reply_to": "thread.e1.reply"}),
		},
		"empty times to live": {
			map[string]string{"ttl_ms": "", "loom.ttl_ms": ""},
			with(map[string]string{"thread_id": "e1", "correlation_id": "e1", "reply_to": "thread.e1.reply"}),
		},
		"the sender's trace": {
			map[string]string{"trace_id": "4bf92f", "span_id": "", "trace_flags": "zz", "traceparent": "00"},
			with(map[string]string{
				"trace_id": "4bf92f", "span_id": "", "trace_flags": "zz", "traceparent": "00",
				"thread_id": "e1", "correlation_id": "e1", "reply_to": "thread.e1.reply",
			}),
		},
		"a topic that the sender claims": {
			map[string]string{"loom.topic": "other"},
			with(map[string]string{"thread_id": "e1", "correlation_id": "e1", "reply_to": "thread.e1.reply"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(tt.in)
			got := stamp(tt.in, "work.new", "e1", stampTime)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, tt.in); diff != "" {
				t.Errorf("the sender's metadata changed: %s", diff)
			}
			if diff := cmp.Diff(got, stamp(got, "work.new", "e1", stampTime.Add(time.Hour))); diff != "" {
				t.Errorf("stamped twice: %s", diff)
			}
		})
	}
}

// Only the sender of an event sees no correlation id, unless it gave one.
func TestEcho(t *testing.T) {
	for _, tt := range []struct {
		name, recipient string
		sent            map[string]string
		want            string
	}{
		{"another agent", "b", map[string]string{"loom.sender": "a"}, "e1"},
		{"nobody in particular", "", map[string]string{"loom.sender": "a"}, "e1"},
		{"the sender", "a", map[string]string{"loom.sender": "a"}, ""},
		{"the sender, of a thread", "a", map[string]string{"loom.sender": "a", "loom.thread_id": "t"}, ""},
		{"the sender, of a bare thread", "a", map[string]string{"loom.sender": "a", "thread_id": "t"}, ""},
		{"the sender, who gave one", "a", map[string]string{"loom.sender": "a", "loom.correlation_id": "c"}, "c"},
		{"the sender, who gave a bare one", "a", map[string]string{"loom.sender": "a", "correlation_id": "c"}, "c"},
		{"no sender", "a", nil, "e1"},
	} {
		stored := stamp(tt.sent, "topic", "e1", stampTime)
		before := maps.Clone(stored)
		if got := echo(stored, "e1", tt.recipient)["correlation_id"]; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if diff := cmp.Diff(before, stored); diff != "" {
			t.Errorf("%s: the stored metadata changed: %s", tt.name, diff)
		}
	}
}

// Whatever comes in, the receiver's number parser is safe, and an event with a
// sender is never sent to answer at a thread.
func FuzzStamp(f *testing.F) {
	f.Add("ttl", "x", "loom.ttl_ms", "y", "loom.sender", "z")
	f.Add("reply_to", "", "loom.sender", "a", "thread_id", "t")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2, k3, v3 string) {
		got := stamp(map[string]string{k1: v1, k2: v2, k3: v3}, "topic", "id", stampTime)
		for _, key := range []string{"ttl", "ttl_ms", "loom.ttl_ms", "hop", "ts"} {
			if value, ok := got[key]; ok && !isNumber(value) {
				t.Errorf("%s is %q", key, value)
			}
		}
		if got["loom.topic"] != "topic" || got["thread_id"] == "" || got["reply_to"] == "" {
			t.Errorf("incomplete: %v", got)
		}
	})
}
