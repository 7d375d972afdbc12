package main

import (
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// What forks begin with shows the memory of the person for whom the prompt was made, and so do
// the prompts of their forks: all of it goes when the person is erased, and what others' forks
// begin with stays.
//
// Y28
func TestEraseOfAPersonEndsForks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	const secret, other = "the pin of zoltan is canary4711x", "the pin of anna is canary4712x"
	ask := func(agent, session string) (string, error) {
		answer, err := p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: session, MaxTokens: 8000, Goal: "say the pin"})
		return answer.String(), err
	}
	fork := func(parent, session, child string) string {
		t.Helper()
		made, err := p.context().SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{
			AgentId: parent, SessionId: session, ChildId: child, Goal: "say it again", Limits: unhurried, ForkFrom: new(""),
		})
		must(t, err)
		return made.GetSessionId()
	}
	type forked struct{ child, session string }
	forks := map[string][]forked{}
	for user, text := range map[string]string{"zoltan": secret, "anna": other} {
		agent := "of-" + user
		_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: agent, UserId: user, Text: text})
		must(t, err)
		_, err = p.context().ConfigureSession(t.Context(), &loombridgev1.ConfigureSessionRequest{
			AgentId: agent, SessionId: "s", Prompt: &loombridgev1.PromptSettings{UserId: user},
		})
		must(t, err)
		for _, m := range []*loombridgev1.Message{
			{Role: loombridgev1.Role_ROLE_USER, Content: "what is my pin?"},
			{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "hm"},
			{Role: loombridgev1.Role_ROLE_USER, Content: "say the pin"},
		} {
			_, err := p.context().AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s", Messages: []*loombridgev1.Message{m}})
			must(t, err)
			_, err = ask(agent, "s")
			must(t, err)
		}
		if said, err := ask(agent, "s"); err != nil || !strings.Contains(said, text) {
			t.Fatalf("%s: the prompt shows no memory: %v, %v", user, said, err)
		}
		first := forked{"kid-" + user, ""}
		first.session = fork(agent, "s", first.child)
		if said, err := ask(first.child, first.session); err != nil || !strings.Contains(said, text) {
			t.Fatalf("%s: the fork does not begin as its parent did: %v, %v", user, said, err)
		}
		second := forked{"grandkid-" + user, ""}
		second.session = fork(first.child, first.session, second.child)
		forks[user] = []forked{first, second}
	}

	_, err := p.eraseScope(t, &loombridgev1.EraseSubject{Owner: &loombridgev1.EraseSubject_UserId{UserId: "zoltan"}}, false)
	must(t, err)
	for user, all := range forks {
		for _, f := range all {
			said, err := ask(f.child, f.session)
			if user == "zoltan" && (status.Code(err) != codes.NotFound || strings.Contains(said, secret)) {
				t.Errorf("%s still says %v, %v", f.child, said, err)
			}
			if user == "anna" && (err != nil || !strings.Contains(said, other)) {
				t.Errorf("%s lost what it begins with: %v, %v", f.child, said, err)
			}
		}
	}
	must(t, p.Stop())
	found := 0
	decodeStore(t, copyOf(t, filepath.Join(dir, "store")), func(b []byte) {
		if strings.Contains(string(b), "canary4711x") {
			found++
		}
	})
	if found > 0 {
		t.Errorf("%d pieces of the store still have the person's words", found)
	}
}
