package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	"github.com/loom-bridge/loom-bridge/memory/embed/builtin"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// told is what three people told a chat bot, and what they ask it the day after: every second
// question has no word of its answer.
var told = map[string]struct {
	said  []string
	asked [][2]string // the question, and a text that the answer has
}{
	"ann": {[]string{
		"My hamster is called Pepper", "I work as a nurse in the children's ward", "I can't stand coriander",
		"My brother Tom lives in Leeds", "We got married on the 3rd of June 2017", "I drive a yellow Fiat",
		"On Tuesdays I sing in a choir", "I am allergic to penicillin", "My phone number ends with 4471",
		"I grew up in a small village near Bath", "My favourite film is Spirited Away", "I am learning Portuguese",
		"Our flat is on the fourth floor without a lift", "My boss is Mrs Okafor", "I have run two marathons",
		"My mum's birthday is the 9th of October", "I paid 1,200 pounds for the sofa", "My dentist is Dr Singh",
		"I usually get up at half past five", "I want to visit Japan next spring",
	}, [][2]string{
		{"What is my hamster called?", "Pepper"},
		{"What do I do for a living?", "nurse"},
		{"Where does my brother live?", "Leeds"},
		{"Which herb do I hate?", "coriander"},
		{"What is the name of my dentist?", "Dr Singh"},
		{"When is our wedding anniversary?", "3rd of June"},
		{"How much did I pay for the sofa?", "1,200"},
		{"Which language do I study?", "Portuguese"},
		{"Who is my boss?", "Okafor"},
	}},
	"bob": {[]string{
		"I moved from Hamburg to Vienna in 2021", "My daughter Mia plays the cello", "I'm a vegetarian", "My laptop runs Debian",
		"I broke my left arm as a child", "My bicycle was stolen last week", "The wifi password at home is blue-otter-77",
		"I take my coffee black", "My landlord is Mr Huber", "I teach chemistry at a grammar school", "My wife is a lawyer",
		"I have a meeting with the bank on Friday at ten", "I'm afraid of flying", "My shoe size is 44", "I support Rapid Vienna",
		"We are going to Croatia in August", "My car is in the garage because of the brakes", "I play chess every Sunday",
		"I owe Karl fifty euros", "I quit smoking two years ago",
	}, [][2]string{
		{"What is the wifi password?", "blue-otter-77"},
		{"Which instrument does my child play?", "cello"},
		{"What is my shoe size?", "44"},
		{"Which subject do I teach?", "chemistry"},
		{"When is my meeting with the bank?", "Friday"},
		{"Where do we spend our summer holiday?", "Croatia"},
		{"Whom do I owe money?", "Karl"},
		{"Do I eat meat?", "vegetarian"},
	}},
	"eve": {[]string{
		"I play the drums in a band called Static", "My grandmother comes from Iceland", "I have two cats, Milo and Otis", "I study law in my third year",
		"My rent is 640 euros a month", "I lost my glasses on the train", "My best friend is Nadia", "I bake sourdough bread at weekends",
		"My exam in tax law is on the 14th", "I'm left-handed", "My parents run a bakery", "I can't swim", "I use an old Nikon camera",
		"I volunteer at an animal shelter", "I am 1.72 m tall", "My favourite colour is teal", "I have an interview at a publisher on Monday",
		"I broke up with Jonas in May", "My bus is the number 28", "I sleep badly when the moon is full",
	}, [][2]string{
		{"What are my cats called?", "Milo"},
		{"What does my flat cost me?", "640"},
		{"When is my exam in tax law?", "14th"},
		{"What kind of business do my mum and dad have?", "bakery"},
		{"What is my favourite colour?", "teal"},
		{"How do I help creatures without a home?", "shelter"},
		{"Which camera do I use?", "Nikon"},
		{"Who is my ex-boyfriend?", "Jonas"},
	}},
}

// A chat bot as a newcomer writes it, with nothing set: it saves what each person says and asks for
// a prompt at each question. What answers stands among the first three hits and in the prompt.
//
// F08, F20, I12
func TestChatBot(t *testing.T) {
	t.Parallel()
	path := builtin.Find(filepath.Join("..", "..", "..", "bin", "loom-bridge-server"))
	if path == "" {
		t.Skip("no model of embeddings in bin: `make model` fetches it")
	}
	p := MustRunWith(t, t.TempDir(), func(c *Config) { c.EmbedderHosts, c.ModelFile = "127.0.0.1:1", path }, "--embedder", "auto")
	client := contexts.New(p.conn)
	asked, found, shown, tokens := 0, 0, 0, int32(0)
	for user, talk := range told {
		for _, said := range talk.said {
			_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "bot", UserId: user, Text: said})
			must(t, err)
		}
		eventually(t, waitTime, func() error {
			stats, err := p.memory().ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: "bot", UserId: user, StatsOnly: true})
			if err != nil || stats.GetStats().GetPending() > 0 {
				return fmt.Errorf("%v %w", stats, err)
			}
			return nil
		})
		for _, q := range talk.asked {
			asked++
			hits, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "bot", UserId: user, Query: q[0], Limit: 3})
			must(t, err)
			if slices.ContainsFunc(hits.GetHits(), func(hit *loombridgev1.MemoryHit) bool { return strings.Contains(hit.GetRecord().GetText(), q[1]) }) {
				found++
			} else {
				t.Logf("%q is not among the first hits of %q", q[1], q[0])
			}
			_, err = client.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: "bot", SessionId: user, Messages: []*loombridgev1.Message{
				{Role: loombridgev1.Role_ROLE_USER, Content: q[0]},
			}})
			must(t, err)
			got, err := client.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "bot", SessionId: user, MaxTokens: 8192, Settings: &loombridgev1.PromptSettings{UserId: user}})
			must(t, err)
			if slices.ContainsFunc(got.GetMessages(), func(m *loombridgev1.Message) bool { return strings.Contains(m.GetContent(), q[1]) }) {
				shown++
			} else {
				t.Logf("%q is not in the prompt of %q", q[1], q[0])
			}
			tokens += got.GetTokens().GetTokens()
		}
	}
	t.Logf("of %d questions %d are answered in the first three hits, %d in the prompt; a prompt has %d tokens", asked, found, shown, tokens/int32(asked))
	if asked != 25 || found < 21 || shown < 21 {
		t.Errorf("of %d questions %d are answered in the first three hits, %d in the prompt, want 21", asked, found, shown)
	}
}
