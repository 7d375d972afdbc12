package main

import (
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const sayAgent = loombridgev1.ApprovalDecision_APPROVAL_DECISION_AGENT

// noAddress is told of a host that may be reached and has no address: what an approval
// leads to where there is no network.
const noAddress = "No connection to "

// askedWorld is a server whose programs ask for hosts, and who is asked.
type askedWorld struct {
	*shellWorld
	watch grpc.ServerStreamingClient[loombridgev1.WatchApprovalsResponse]
}

// asks calls a program that needs a host for which a person is asked, gives the answer and
// returns what the program wrote.
func (w *askedWorld) asks(agent, session, host string, say loombridgev1.ApprovalDecision) string {
	w.tb.Helper()
	waits := w.later(agent, session, "shell:run", object{"command": "curl -sS --noproxy nothing http://" + host + "/"})
	pending := MustPending(w.tb, w.watch)
	if c := pending.GetCapability(); c.GetKind() != "host" || c.GetName() != host || pending.GetTool() != "shell:run" || pending.GetAgentId() != agent {
		w.tb.Errorf("for %s was asked %v", host, pending)
	}
	must(w.tb, w.answer(w.tb, pending.GetId(), say))
	return saidOf(<-waits)
}

// reaches is the same for a host about which nobody has to be asked.
func (w *askedWorld) reaches(agent, session, host string) string {
	w.tb.Helper()
	return saidOf(w.callAs(agent, session, "shell:run", object{"command": "curl -sS --noproxy nothing http://" + host + "/"}))
}

func saidOf(got *loombridgev1.ToolResponse) string {
	return got.GetErrorMessage() + got.GetOutputJson()
}

// A program that needs a host beyond its profile waits for a person, who is asked for the host
// and its port. What they say holds for it alone, as long as they say, in both tiers; an approval
// of a name never leads into this machine. N07
func TestHostsAreAskedFor(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"namespaces", "landlock"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			p, _ := networked(t, tier)
			w := &askedWorld{shellWorld: p}
			const host = "asked.test:80"
			if got := w.reaches("web", "s1", host); !strings.Contains(got, "Permission denied: no connection to "+host) {
				t.Errorf("nobody watches: %s", got)
			}
			w.watch = MustWatch(t, w.process)
			allowed := func(what, got string) {
				t.Helper()
				if !strings.Contains(got, noAddress+host) || strings.Contains(got, "Permission denied") {
					t.Errorf("%s: %s", what, got)
				}
			}
			if got := w.asks("web", "s1", host, sayNo); !strings.Contains(got, "Permission denied: no connection to "+host) || !strings.Contains(got, "who said no") {
				t.Errorf("denied: %s", got)
			}
			allowed("once", w.asks("web", "s1", host, sayOnce))
			allowed("for the session", w.asks("web", "s1", host, saySession))
			allowed("in the session", w.reaches("web", "s1", host))
			allowed("for the agent", w.asks("web", "s2", host, sayAgent))
			allowed("of the agent", w.reaches("web", "s3", host))
			// Not for another port, name or name below it.
			for _, other := range []string{"asked.test:81", "other.test:80", "www.asked.test:80", "asked.test.other.test:80"} {
				if got := w.asks("web", "s1", other, sayNo); !strings.Contains(got, "Permission denied") {
					t.Errorf("%s: %s", other, got)
				}
			}
			got := saidOf(w.callAs("web", "s1", "shell:run", object{"command": "curl -sS --connect-to other.test:443:asked.test:80 https://other.test/ 2>&1; curl -sS -x $http_proxy -H 'Host: other.test' http://asked.test/"}))
			if strings.Contains(got, "other.test:") {
				t.Errorf("by another name: %s", got)
			}
			// A name that leads to this machine, allowed by a person.
			canary, err := net.Listen("tcp4", "127.0.0.1:0")
			must(t, err)
			defer canary.Close()
			_, port, err := net.SplitHostPort(canary.Addr().String())
			must(t, err)
			if got := w.asks("web", "s1", "localhost:"+port, sayOnce); !strings.Contains(got, "not on the public internet") {
				t.Errorf("localhost: %s", got)
			}
			list, err := w.tools().ListApprovals(t.Context(), &loombridgev1.ListApprovalsRequest{AgentId: "boss"})
			must(t, err)
			if len(list.GetApprovals()) != 2 {
				t.Errorf("remembered: %v", list)
			}
			for _, one := range list.GetApprovals() {
				if one.GetCapability().GetName() != host {
					t.Errorf("remembered: %v", one)
				}
				_, err := w.tools().RevokeApproval(t.Context(), &loombridgev1.RevokeApprovalRequest{AgentId: "boss", Id: one.GetId()})
				must(t, err)
			}
			allowed("always", w.asks("web", "s1", host, sayAlways))
			audit, err := w.tools().ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "boss", Tool: "shell:run", CallerId: "web", PageSize: 100})
			must(t, err)
			seen := map[string]int{}
			for _, r := range audit.GetRecords() {
				if r.GetCapability() == "host "+host {
					seen[r.GetApproval()]++
				}
			}
			for approval, want := range map[string]int{"denied": 1, "once": 1, "session": 2, "agent": 2, "always": 1} {
				if seen[approval] < want {
					t.Errorf("the audit has %d calls with %s, want %d: %v", seen[approval], approval, want, seen)
				}
			}
		})
	}
}

// What a script got from a network is not given again from the cache.
func TestScriptsWithNetworkAreNotCached(t *testing.T) {
	t.Parallel()
	w, _ := networked(t, "namespaces")
	w.put("s.py", "import urllib.request as u\ndef f(): return u.urlopen('http://site.test/plain').read().decode()\n")
	w.put("t.py", "def f(): return 'plain text'\n")
	for _, c := range []struct{ script, want string }{
		{"s.py", `"cached":false`}, {"s.py", `"cached":false`}, {"t.py", `"cached":false`}, {"t.py", `"cached":true`},
	} {
		if got := saidOf(w.callAs("web", "s1", "python:run_script", object{"path": c.script, "function": "f"})); !strings.Contains(got, c.want) || !strings.Contains(got, "plain text") {
			t.Errorf("%s gave %s, want %s", c.script, got, c.want)
		}
	}
}
