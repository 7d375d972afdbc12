package analysis

import "strings"

// stopWords are the English words that carry no meaning by themselves, among
// them what an apostrophe leaves behind (don, t, ll) and what people say before
// they say something. It is never changed.
var stopWords = stopSet(`
	a an the
	and but if no nor not or so such than that then there these this those too very just
	as at by for from in into of off on onto out over to up down about with
	am are be been being is was were
	do does did has have had having
	can could may might should will would
	i me my mine we our ours you your yours he him his she her hers it its they them their theirs us
	what which who whom whose when where why how
	also d don ll m re s t ve
	many much
	hey oh ok okay wow yeah yep yup
`)

func isStopWord(word string) bool {
	_, stop := stopWords[word]
	return stop
}

func stopSet(words string) map[string]struct{} {
	set := make(map[string]struct{})
	for word := range strings.FieldsSeq(words) {
		set[word] = struct{}{}
	}
	return set
}
