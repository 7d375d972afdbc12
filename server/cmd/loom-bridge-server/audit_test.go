package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// MustAudit runs a sub-command of audit.
func MustAudit(tb testing.TB, store string, args ...string) (stdout string, err error) {
	tb.Helper()
	var output, console bytes.Buffer
	all := append([]string{"audit", args[0], "--data-dir", store}, args[1:]...)
	err = run(tb.Context(), all, noEnvironment, &output, &console)
	return output.String(), err
}

// auditTool calls a tool, which may be refused.
func auditTool(tb testing.TB, p *process, agent, name, args, request string) {
	tb.Helper()
	_, _ = p.bridge().Tool(tb.Context(), &loombridgev1.ToolRequest{
		AgentId: agent, Name: name, RequestId: request, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: args},
	})
}

// Every call has a record, whatever came of it, and those that a client gets are those that
// the store has. What is changed or cut off behind the server's back is found with its log.
func TestAuditOfCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	p := MustRun(t, dir, "--durability", "none")
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("text"), 0o600))
	const workers = 16
	calls := sized(800, 10_000)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := worker; i < calls; i += workers {
				agent := fmt.Sprint("a", worker)
				switch i % 5 {
				case 0, 1:
					auditTool(t, p, agent, "fs:read_file", `{"path":"a.txt"}`, "")
				case 2:
					auditTool(t, p, agent, "fs:read_file", `{"path":"../b.txt"}`, fmt.Sprint("r", i))
				case 3:
					auditTool(t, p, agent, "fs:read_file", `{"path":7}`, "")
				case 4:
					_, err := loomv1pb.NewBridgeClient(p.conn).ForwardToolCall(t.Context(), &loomv1pb.ToolCall{
						Id: fmt.Sprint(i), Name: "fs:list_dir", Arguments: `{"path":"."}`,
					})
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	outcomes, token := map[loombridgev1.AuditOutcome]int{}, ""
	for {
		page, err := loombridgev1.NewToolServiceClient(p.conn).ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "a", PageSize: 1000, PageToken: token})
		must(t, err)
		for _, r := range page.GetRecords() {
			outcomes[r.GetOutcome()]++
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	want := map[loombridgev1.AuditOutcome]int{
		loombridgev1.AuditOutcome_AUDIT_OUTCOME_OK: calls / 5 * 3, loombridgev1.AuditOutcome_AUDIT_OUTCOME_DENIED: calls / 5,
		loombridgev1.AuditOutcome_AUDIT_OUTCOME_REFUSED: calls / 5,
	}
	if fmt.Sprint(outcomes) != fmt.Sprint(want) {
		t.Errorf("records by outcome: %v, want %v", outcomes, want)
	}
	must(t, p.Stop())
	log := filepath.Join(dir, "server.log")
	must(t, os.WriteFile(log, []byte(p.Log.String()), 0o600))
	out, err := MustAudit(t, store, "verify", "--log", log)
	if err != nil || !strings.HasPrefix(out, fmt.Sprint(calls)+" records verified, 0 deleted, 0 not sealed") || strings.Contains(out, " 0 heads") {
		t.Errorf("verify: %v %s", err, out)
	}
	listed, err := MustAudit(t, store, "list", "--agent", "a3")
	if rows := strings.Count(listed, "\n"); err != nil || rows != calls/workers-calls/workers/5 {
		t.Errorf("list has %d lines for one agent: %v", rows, err)
	}
	cutAudit(t, store)
	if out, err := MustAudit(t, store, "verify"); err != nil {
		t.Errorf("without the log a cut end can't be found: %v %s", err, out)
	}
	if out, err := MustAudit(t, store, "verify", "--log", log); err == nil || !strings.Contains(out, "cut off") {
		t.Errorf("the cut end is not found: %v %s", err, out)
	}
}

// cutAudit takes away the newest link, so that nothing seals the records behind it.
func cutAudit(tb testing.TB, store string) {
	tb.Helper()
	engine, err := rockskv.Open(store, nil)
	must(tb, err)
	defer func() { must(tb, engine.Close()) }()
	scope := kv.Scope{Tenant: "default", Kind: kv.OwnerSystem, Owner: "audit"}
	newest := kv.Prefix(scope.Key('l'))
	newest.Reverse, newest.Limit = true, 1
	var batch kv.Batch
	for pair, err := range engine.Scan(tb.Context(), kv.System, newest) {
		must(tb, err)
		batch.Delete(kv.System, pair.Key)
	}
	must(tb, engine.Commit(tb.Context(), kv.Commit{
		Guards: []kv.Guard{{Ref: kv.Ref{Keyspace: kv.System, Scope: scope}, Any: true}}, Batch: &batch,
	}))
}

// Records outlive the death of the process, and of an erased agent only digests stay.
func TestAuditAfterKillAndErasure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	c := MustStartChild(t, dir)
	p := &process{conn: MustDial(t, c.Address)}
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("text"), 0o600))
	for i := range 20 {
		auditTool(t, p, fmt.Sprint("a", i%2), "fs:read_file", `{"path":"a.txt"}`, "")
		auditTool(t, p, fmt.Sprint("a", i%2), "fs:read_file", `{"path":7}`, "")
	}
	must(t, c.Process.Kill())
	_ = c.Wait()
	p = MustRun(t, dir)
	must(t, p.Stop())
	if out, err := MustAudit(t, store, "verify"); err != nil || !strings.HasPrefix(out, "40 records verified, 0 deleted, 0 not sealed") {
		t.Errorf("after the kill: %v %s", err, out)
	}
	if out, err := MustAudit(t, store, "erase", "--agent", "a1"); err != nil || !strings.HasPrefix(out, "deleted 20 records") {
		t.Errorf("erase: %v %s", err, out)
	}
	if out, err := MustAudit(t, store, "verify"); err != nil || !strings.HasPrefix(out, "20 records verified, 20 deleted") {
		t.Errorf("after the erasure: %v %s", err, out)
	}
	listed, err := MustAudit(t, store, "list")
	if err != nil || strings.Contains(listed, `"a1"`) || strings.Count(listed, "\n") != 20 {
		t.Errorf("list after the erasure: %v %s", err, listed)
	}
}
