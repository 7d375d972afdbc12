package tokens

import (
	"encoding/binary"
	"strings"
)

const (
	// DefaultRecentBytes is how much text is remembered at least with its count,
	// and twice as much at most: that of a few hundred prompts.
	DefaultRecentBytes = 16 << 20
	// maxRecentBytes bounds one such text. A lock is held while it is looked up.
	maxRecentBytes = 32 << 10
	// recentBytes is about what one takes in addition to its text.
	recentBytes = 100
)

// recentKey identifies a counted text: a text by its encoding, or all that counts of a
// message for its model.
type recentKey struct {
	encoding Encoding
	model    *Model
	text     string
}

// recent remembers counts by the texts themselves. To find a text takes a tenth
// of what its SHA-256 does, and a message is found at once instead of string by
// string.
type recent struct {
	*generations[recentKey, Count]
}

func newRecent(limit int) recent {
	return recent{newGenerations[recentKey, Count](limit, func(key recentKey) int { return len(key.text) + recentBytes })}
}

// text returns the count of a text that keepText was given.
func (r recent) text(encoding Encoding, text string) (tokens int, ok bool) {
	if len(text) > maxRecentBytes {
		return 0, false
	}
	found, ok := r.get(recentKey{encoding: encoding, text: text})
	return found.Tokens, ok
}

// keepText remembers the count of a text. Call it for texts that were counted before: most
// texts are counted only once.
func (r recent) keepText(encoding Encoding, text string, tokens int) {
	if len(text) > maxRecentBytes {
		return
	}
	key := recentKey{encoding: encoding, text: strings.Clone(text)} // it may be part of a longer one
	r.put(key, Count{Tokens: tokens})
}

// message returns the count of a message, which count finds if it is not known.
func (r recent) message(model *Model, m *Message, count func() (Count, error)) (Count, error) {
	if m.bytes() > maxRecentBytes {
		return count()
	}
	var room [2 << 10]byte
	text := m.appendKey(room[:0])
	r.mu.Lock()
	found, ok := r.young[recentKey{model: model, text: string(text)}] // without a copy
	r.mu.Unlock()
	if ok {
		return found, nil
	}
	key := recentKey{model: model, text: string(text)}
	if found, ok = r.get(key); ok {
		return found, nil
	}
	found, err := count()
	if err == nil {
		r.put(key, found)
	}
	return found, err
}

// bytes returns the bytes of all strings of the message.
func (m *Message) bytes() int {
	n := len(m.Role) + len(m.Content) + len(m.Blocks) + len(m.Name) + len(m.CallID) + len(m.Extra)
	for i := range m.Calls {
		n += len(m.Calls[i].ID) + len(m.Calls[i].Name) + len(m.Calls[i].Arguments) + len(m.Calls[i].Extra)
	}
	return n
}

// appendKey appends all strings of the message, so that no two messages give
// the same.
func (m *Message) appendKey(dst []byte) []byte {
	text := func(s string) {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	text(m.Role)
	text(m.Content)
	dst = binary.AppendUvarint(dst, uint64(len(m.Blocks)))
	dst = append(dst, m.Blocks...)
	text(m.Name)
	text(m.CallID)
	text(string(m.Extra))
	for i := range m.Calls {
		text(m.Calls[i].ID)
		text(m.Calls[i].Name)
		text(m.Calls[i].Arguments)
		text(m.Calls[i].Extra)
	}
	return dst
}
