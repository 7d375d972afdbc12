package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/compose"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// addTask adds a task to session s1 as an event.
func addTask(t *testing.T, s *servertest.Server, id string, importance float64) {
	t.Helper()
	_, err := s.Bridge.Emit(t.Context(), taskEvent("s1", "execute", fmt.Sprintf(`{"task_id":%q,"importance":%g}`, id, importance)))
	must(t, err)
}

// tasksOf are the ids of a tier's tasks, in the order of its tool; those of L4 are
// the records of every session, oldest first.
func tasksOf(t *testing.T, s *servertest.Server, tier int) []string {
	t.Helper()
	if tier < 4 {
		return MustAsk(t, s, "s1", fmt.Sprintf("query_l%d_memory", tier), `{"limit":1000}`).values("task_id")
	}
	listed, err := s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, Tiers: []int32{4}, PageSize: 500})
	must(t, err)
	ids := []string{}
	for _, r := range listed.GetRecords() {
		ids = append(ids, strings.TrimPrefix(r.GetKey(), "task/"))
	}
	return ids
}

// The tiers hold 50, 100 and 500 tasks of a session, and all of L4. What is important
// enters L2 and stays in L1. At 90 tasks of L2 the 18 least important become
// summaries, the oldest first among equals; at 450 summaries the 90 oldest become
// long-term memory.
//
// F11, P22, P24
func TestTiersFillUp(t *testing.T) {
	s := servertest.Start(t, nil)
	counts := func() [4]int {
		var all [4]int
		for tier := range all {
			all[tier] = len(tasksOf(t, s, tier+1))
		}
		return all
	}
	addTask(t, s, "t0", 0.6)
	n := 1
	for _, step := range []struct {
		add  int
		want [4]int
	}{
		{1, [4]int{2, 1, 0, 0}}, // only what is over 0.6 enters L2
		{48, [4]int{50, 49, 0, 0}},
		{1, [4]int{50, 50, 0, 0}},
		{39, [4]int{50, 89, 0, 0}},
		{1, [4]int{50, 72, 18, 0}},
		{17, [4]int{50, 89, 18, 0}},
		{1, [4]int{50, 72, 36, 0}},
		{18 * 22, [4]int{50, 72, 432, 0}},
		{17, [4]int{50, 89, 432, 0}},
		{1, [4]int{50, 72, 360, 90}},
	} {
		for range step.add {
			addTask(t, s, fmt.Sprint("t", n), .61+float64(n%7)/100)
			n++
		}
		if got := counts(); got != step.want {
			t.Fatalf("after %d tasks: %v, want %v", n, got, step.want)
		}
		if n == 91 { // 1 to 90: 12 of them have importance .61, 13 have .62
			moved := []string{"t50", "t43", "t36", "t29", "t22", "t15", "t8", "t1", "t84", "t77", "t70", "t63", "t56", "t49", "t42", "t35", "t28", "t21", "t14", "t7"}
			got := tasksOf(t, s, 3)
			for _, id := range moved[8:] {
				if !slices.Contains(got, id) {
					t.Errorf("%s of the least importance did not move: %v", id, got)
				}
			}
			if diff := cmp.Diff([]string{"t36", "t29", "t22", "t15", "t8", "t1"}, got[:6]); diff != "" {
				t.Errorf("of the next importance (-want +got):\n%s", diff)
			}
		}
	}
	if l1 := tasksOf(t, s, 1); l1[0] != fmt.Sprint("t", n-50) || l1[49] != fmt.Sprint("t", n-1) {
		t.Errorf("L1 holds %v", l1)
	}
	third, fourth := tasksOf(t, s, 3), tasksOf(t, s, 4)
	if slices.Contains(third, "t84") || !slices.Contains(fourth, "t84") || slices.Contains(fourth, fmt.Sprint("t", n-1)) {
		t.Errorf("L3 holds %v, L4 %v", third, fourth)
	}
	if first := MustAsk(t, s, "s1", "query_l1_memory", `{"task_id":"t0"}`); first.Count != 1 || first.Items[0]["importance"] != 0.6 {
		t.Errorf("the task that left L1 without another tier: %v", first.Items)
	}
}

// How much a task matters follows from its action, unless its caller says so.
//
// P23
func TestImportanceOfActions(t *testing.T) {
	s := servertest.Start(t, nil)
	all := map[string]float64{
		"node.error": .9, "node.planning": .8, "node.tool_result": .75, "node.tool_call": .7, "execute": .65, "node.complete": .6,
		"node.thinking": .55, "node.message": .5, "anything": .5,
	}
	for action := range all {
		for id, importance := range map[string]*float64{"": nil, " of its caller": new(0.05), " of none": new(0.0)} {
			_, err := s.Context.RecordStep(t.Context(), withTask("s1", &loombridgev1.Task{TaskId: action + id, Action: action, Importance: importance}))
			must(t, err)
		}
	}
	want, got := map[string]any{}, map[string]any{}
	for action, importance := range all {
		want[action], want[action+" of its caller"], want[action+" of none"] = importance, .05, 0.0
	}
	for _, item := range MustAsk(t, s, "s1", "query_l1_memory", `{"limit":1000}`).Items {
		got[fmt.Sprint(item["task_id"])] = item["importance"]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("importances (-want +got):\n%s", diff)
	}
}

// smallTiers are tiers that pass tasks on soon.
var smallTiers = tiers.Options{L1: 5, L2: 10, L3: 12}

// The server dies before or after any commit, and another one takes over: each task
// that was acknowledged stands in one tier of those behind L1, and is found by its id.
//
// P25
func TestTasksOutliveDeathAtAnyCommit(t *testing.T) {
	for name, plan := range map[string]kvtest.FailurePlan{
		"nothing written": {Err: kv.ErrFull, Repeat: true},
		"written":         {Err: kv.ErrUnknownOutcome, Written: true},
	} {
		engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
		added := []string{}
		for commit := 1; commit <= 5; commit++ {
			for range 12 {
				id, importance := fmt.Sprint("t", len(added)), .7+float64(len(added)%4)/20
				added = append(added, id)
				t.Run(fmt.Sprint(name, ", commit ", commit), func(t *testing.T) { // a server that ends with it
					s := servertest.Start(t, &servertest.Options{Engine: engine, Domain: compose.Options{Tiers: smallTiers}})
					plan.Commit = commit
					engine.Replan(plan)
					_, err := s.Bridge.Emit(t.Context(), taskEvent("s1", "execute", fmt.Sprintf(`{"task_id":%q,"importance":%g}`, id, importance)))
					engine.Replan(kvtest.FailurePlan{})
					if err != nil { // the caller can't know, and gives the same task again
						addTask(t, s, id, importance)
					}
				})
			}
		}
		s := servertest.Start(t, &servertest.Options{Engine: engine, Domain: compose.Options{Tiers: smallTiers}})
		addTask(t, s, "unimportant", .1) // makes up for what the last one did not do
		checkTiers(t, s, name, added)
	}
}

// checkTiers checks that each of the added tasks is where it has to be, once.
func checkTiers(t *testing.T, s *servertest.Server, name string, added []string) {
	t.Helper()
	second, third, fourth := tasksOf(t, s, 2), tasksOf(t, s, 3), tasksOf(t, s, 4)
	got := slices.Concat(second, third, fourth)
	slices.Sort(got)
	want := slices.Sorted(slices.Values(added))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: tasks in L2 to L4 (-want +got):\n%s", name, diff)
	}
	if len(second) >= 9 || len(third) >= 11 || len(third) == 0 || len(fourth) == 0 {
		t.Errorf("%s: %d in L2, %d in L3, %d in L4", name, len(second), len(third), len(fourth))
	}
	for _, id := range added {
		if whole := MustAsk(t, s, "s1", "query_l1_memory", fmt.Sprintf(`{"task_id":%q}`, id)); whole.Count != 1 {
			t.Errorf("%s: the log has %d tasks %s", name, whole.Count, id)
		}
	}
}

// While nothing can be written but tasks, these stay in the log, and the next task
// makes up for it.
//
// P25
func TestTasksStayWhileTheNextTierTakesNone(t *testing.T) {
	engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
	s := servertest.Start(t, &servertest.Options{Engine: engine, Domain: compose.Options{Tiers: smallTiers}})
	added := []string{}
	for n := range 30 {
		added = append(added, fmt.Sprint("t", n))
		var err error
		for try := 0; try < 5 && (try == 0 || err != nil); try++ { // the server's own work after its start may come first
			engine.Replan(kvtest.FailurePlan{Commit: 2, Err: kv.ErrFull, Repeat: true}) // the task itself is the first
			_, err = s.Context.RecordStep(t.Context(), withTask("s1", &loombridgev1.Task{TaskId: added[n], Action: "execute", Importance: new(.9)}))
		}
		must(t, err)
	}
	if got := len(tasksOf(t, s, 2)); got == len(added) {
		t.Errorf("L2 took %d tasks though nothing could be written", got)
	}
	engine.Replan(kvtest.FailurePlan{})
	addTask(t, s, "unimportant", .1)
	checkTiers(t, s, "afterwards", added)
}

// A record of a task says in short what the task was, in every tier, and in L4 all
// of it as its text.
//
// P26
func TestRecordsOfTasks(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Domain: compose.Options{Tiers: tiers.Options{L1: 5, L2: 2, L3: 2}}})
	long, result := `{"a":"`+strings.Repeat("ä", 300)+`","z":1}`, strings.Repeat("r", 201)
	add := func(id string, importance float64, parameters, result string, tags ...string) {
		t.Helper()
		_, err := s.Context.RecordStep(t.Context(), withTask("s1", &loombridgev1.Task{
			TaskId: id, Action: "execute", Importance: &importance, ParametersForm: &loombridgev1.Task_ParametersJson{ParametersJson: parameters}, Result: result, Tags: tags,
		}))
		must(t, err)
	}
	record := func(id string) (*loombridgev1.Record, map[string]any) {
		t.Helper()
		got, err := s.Memory.GetRecord(convert.AskText(t.Context()), &loombridgev1.GetRecordRequest{
			AgentId: agent, Name: &loombridgev1.GetRecordRequest_Key{Key: "task/" + id},
		})
		must(t, err)
		var metadata map[string]any
		must(t, json.Unmarshal([]byte(got.GetMetadataJson()), &metadata))
		return got, metadata
	}
	want := map[string]any{
		"task_id": "t1", "action": "execute", "parameters": string([]rune(long)[:200]) + "...", "result": strings.Repeat("r", 200) + "...", "status": "completed",
		"tags": []any{"execute", "completed"}, "importance": .9, "session_id": "s1", "source_agent": agent, "ref": "task/t1",
		"created_at": s.Clock.Now().UTC().Format("2006-01-02T15:04:05Z07:00"),
	}
	short := "execute: " + fmt.Sprint(want["parameters"]) + " -> " + fmt.Sprint(want["result"])
	check := func(tier int32, text string) {
		t.Helper()
		r, metadata := record("t1")
		delete(metadata, "moved") // the order of summaries
		if diff := cmp.Diff(want, metadata); diff != "" || r.GetTier() != tier || r.GetText() != text || r.GetImportance() != .9 || r.GetSessionId() != "s1" {
			t.Errorf("in tier %d, want %d: text %q, metadata (-want +got):\n%s", r.GetTier(), tier, r.GetText(), diff)
		}
	}
	add("t1", .9, `{"z": 1, "a": "`+strings.Repeat("ä", 300)+`"}`, result)
	check(2, "execute: "+long+" -> "+result)
	add("t2", .95, `{}`, "", "x", "y") // L2 is full, so that the other one goes on
	check(3, short)
	add("t3", .94, `{}`, "")
	check(4, "execute: "+long+" -> "+result)
	r, metadata := record("t2")
	if !slices.Equal(r.GetTags(), []string{"x", "y"}) || fmt.Sprint(metadata["tags"]) != "[x y]" || metadata["status"] != "pending" {
		t.Errorf("a task with tags: %v", r)
	}
	whole := MustAsk(t, s, "s1", "query_l1_memory", `{"task_id":"task/t1"}`)
	if whole.Count != 1 || whole.Items[0]["result"] != result {
		t.Errorf("the reference leads to %v", whole.Items)
	}
	if found := MustAsk(t, s, "s2", "query_l4_memory", `{"query":"`+strings.Repeat("r", 201)+`"}`); found.Count != 1 || found.values("task_id")[0] != "t1" {
		t.Errorf("L4: %v", found.Items)
	}
}
