package relations

import (
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Sorts are the entries of relations, which go with either record.
func Sorts() []erase.Sort {
	const others = "how others relate their records"
	return []erase.Sort{
		{Keyspace: kv.Records, Kinds: "aus", Tags: string([]byte{tagFrom, tagFromEnded}), Counted: "relations", Texts: others},
		{Keyspace: kv.Records, Kinds: "aus", Tags: string([]byte{tagTo, tagToEnded, tagForgotten}), Texts: others},
	}
}

// Ends are the ids of the records that an entry of a relation names; none of other entries.
func Ends(e erase.Entry) ([]string, error) {
	switch {
	case e.Keyspace != kv.Records || strings.IndexByte(string([]byte{tagFrom, tagTo, tagFromEnded, tagToEnded, tagForgotten}), e.Tag) < 0:
		return nil, nil
	case e.Tag == tagForgotten:
		return []string{string(e.Tail)}, nil
	}
	id, rest, err := kv.CutEscaped(e.Tail)
	if err != nil {
		return nil, err
	}
	if e.Tag == tagFromEnded || e.Tag == tagToEnded { // the moment
		rest = rest[min(8, len(rest)):]
	}
	_, other, err := kv.CutEscaped(rest)
	return []string{id, string(other)}, err
}
