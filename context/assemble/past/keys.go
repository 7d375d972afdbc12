package past

import (
	"encoding/binary"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Tags of records in the log keyspace (memory/FORMAT.md).
const (
	tagRecord = 'p' // session, number: a record
	tagText   = 'x' // session, generation, hash, part: a text
	tagState  = 'r' // session: the generations that there are
)

func recordPrefix(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagRecord), session)
}

func recordKey(scope kv.Scope, session string, number uint64) []byte {
	return binary.BigEndian.AppendUint64(recordPrefix(scope, session), number)
}

func recordNumber(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

func textPrefix(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagText), session)
}

func generationPrefix(scope kv.Scope, session string, generation uint64) []byte {
	return binary.BigEndian.AppendUint64(textPrefix(scope, session), generation)
}

// textKey is the key of a part of a text, from 0.
func textKey(scope kv.Scope, session string, generation uint64, h hash, part int) []byte {
	key := append(generationPrefix(scope, session, generation), h[:]...)
	return binary.BigEndian.AppendUint16(key, uint16(part))
}

func stateKey(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagState), session)
}
