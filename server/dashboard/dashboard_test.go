package dashboard

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/events"
)

// TestEvent: whatever an event holds, the page gets text of the length it knows, and null for what
// was not said.
func TestEvent(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		"": "", "null": "null", "\xff\xfe": "\ufffd", strings.Repeat("a", 101): strings.Repeat("a", 100),
		strings.Repeat("😀", 101): strings.Repeat("😀", 100), "\x00</script>": "\x00</script>",
	} {
		line, err := json.Marshal(eventOf(&events.Event{ID: "e", Topic: "t", Payload: []byte(payload), Time: time.Unix(0, 0)}))
		var got map[string]any
		if err == nil {
			err = json.Unmarshal(line, &got)
		}
		if err != nil || got["payload_preview"] != want || got["sender"] != nil || !utf8.Valid(line) {
			t.Errorf("%.20q: %s, %v", payload, line, err)
		}
		if _, has := got["trace_id"]; has || len(got) != 8 {
			t.Errorf("%.20q: the event has %v", payload, got)
		}
	}
	bare := events.Event{Source: "native", Headers: map[string]string{"sender": "bare", "loom.thread_id": "own", "thread_id": "stamped"}}
	if got := eventOf(&bare); *got.Sender != "bare" || *got.ThreadID != "own" {
		t.Errorf("said by %s in %s", *got.Sender, *got.ThreadID)
	}
}

// TestGraph: a flood of topics leaves a graph that a page can draw, and counts what it shows.
func TestGraph(t *testing.T) {
	t.Parallel()
	g := graph{map[string]*node{}, map[flowKey]*flow{}}
	at := time.UnixMilli(1000)
	for i := range maxFlows + 10 {
		g.pass("a", "b", nodeAgent, fmt.Sprint("t", i), at)
	}
	g.pass("a", "b", nodeAgent, "t0", at.Add(-time.Second))
	a := g.nodes["a"]
	if len(g.flows) != maxFlows || len(a.Topics) != maxTopics || a.EventCount != maxFlows+1 || a.LastActiveMs != 1000 {
		t.Errorf("%d flows, a node %+v", len(g.flows), *a)
	}
	if f := g.flows[flowKey{"a", "b", "t0"}]; f.Count != 2 || f.LastEventMs != 1000 {
		t.Errorf("a flow %+v", *f)
	}
}
