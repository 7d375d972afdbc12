package memory_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// heeded are instructions that hold, each with a request of the kind, and sentences of the long
// answers to earlier ones.
var heeded = []struct {
	rule, asked string
	answers     []string
}{
	{
		"When I ask for SQL, write the keywords in capitals.", "Write me an SQL query that counts the visitors of each day", []string{
			"Here is an SQL query that counts the visitors of each page.", "The query groups the visitors by day and counts each day once.", "You can run the SQL query again for each table of visitors.",
		},
	},
	{
		"Never use sugar in the desserts that you suggest to me.", "Suggest a dessert with plums for Sunday", []string{
			"A dessert with plums is a crumble that bakes for half an hour.", "I suggest plums with cream, a dessert for a warm Sunday.", "For a dessert on Sunday take sugar, plums and a little butter.",
		},
	},
	{
		"Wenn ich nach einer Wanderung frage, nenne immer die Höhenmeter.", "Schlage mir eine Wanderung am See vor", []string{
			"Eine schöne Wanderung führt am See entlang bis zum Wald.", "Ich schlage vor, die Wanderung früh am See zu beginnen.", "Am Ende der Wanderung kann man im See baden.",
		},
	},
	{
		"Quand tu traduis un texte pour moi, garde toujours les noms en anglais.", "Traduis ce texte sur les musées de Londres", []string{
			"Voici le texte traduit sur les musées de Londres.", "Le texte parle des musées et des parcs de Londres.", "Je traduis ce texte phrase par phrase, d'abord les musées.",
		},
	},
	{
		"Cuando te pida una ruta, indica siempre el desnivel.", "Propón una ruta por la costa", []string{
			"La ruta por la costa empieza en el faro y termina en la playa.", "Propongo una ruta de dos horas por la costa.", "Al final de la ruta hay un bar con vistas a la costa.",
		},
	},
}

// Who asks for some work finds the instruction for work of the kind among the first three, before
// the long answers to earlier requests; what a tool or the web said is no instruction.
func TestStandingInstruction(t *testing.T) {
	once := &embeddedOnce{Model: mustModel(t), known: map[string][]float32{}}
	for _, test := range heeded {
		for origin, among := range map[record.Origin]bool{record.OriginUser: true, record.OriginWeb: false, record.OriginTool: false} {
			t.Run(test.rule+" "+origin.String(), func(t *testing.T) {
				r := MustRig(t, memkv.New(nil))
				r.opts.Embedder, r.opts.EmbedTimeout = once, time.Minute
				r.Reopen()
				rule := r.MustSave(t, record.Record{Text: test.rule, Origin: origin}).ID
				for i := range 5 {
					said := slices.Concat(test.answers[i%3:], test.answers[:i%3])
					r.MustSave(t, record.Record{Text: strings.Repeat(strings.Join(said, " ")+" ", 4+i)})
				}
				for _, text := range otherTalk {
					r.MustSave(t, record.Record{Text: text})
				}
				MustEmbedAll(t, r.Store, agent)
				hits := r.MustQuery(t, question.Question{Text: test.asked}).Hits
				if at := slices.IndexFunc(hits, func(h memory.Hit) bool { return h.Record.ID == rule }); (at >= 0 && at < 3) != among {
					t.Errorf("it is at %d", at)
				}
			})
		}
	}
}
