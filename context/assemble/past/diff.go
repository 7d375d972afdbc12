package past

import (
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// ExcerptBytes bounds an excerpt of a Difference.
const ExcerptBytes = 256

// Comparable is a prompt as it is written, for Compare.
type Comparable struct {
	// Head is what stands before the messages, Tools the section that owns it.
	Head  []byte
	Tools string
	// Messages are as they are written, each with what separates it from the one before.
	Messages []Written
}

// Written is a message as it is written.
type Written struct {
	// Bytes are the written bytes, Content is the message's content before encoding.
	Bytes   []byte
	Content string
	// Pieces are the sections that own Content.
	Pieces []Piece
}

// Difference is where two prompts first differ. The zero Difference, which has no
// Section, is of equal ones.
type Difference struct {
	// Section owns the place in the newer prompt, or, where that has ended, what the older
	// one has there.
	Section string
	// Byte is the offset in the written bytes, from 0.
	Byte int64
	// Message is the message that holds it, from 0; -1 is in what stands before them.
	Message int
	// From and To are what stands there in the older and in the newer prompt, at most
	// ExcerptBytes.
	From, To string
}

// Compare returns where two prompts first differ.
func Compare(from, to *Comparable) Difference {
	if at := common(from.Head, to.Head); at < max(len(from.Head), len(to.Head)) {
		return Difference{Section: to.Tools, Byte: int64(at), Message: -1, From: excerpt(from.Head, at), To: excerpt(to.Head, at)}
	}
	place := int64(len(to.Head))
	for i := range max(len(from.Messages), len(to.Messages)) {
		var a, b Written
		if i < len(from.Messages) {
			a = from.Messages[i]
		}
		if i < len(to.Messages) {
			b = to.Messages[i]
		}
		at := common(a.Bytes, b.Bytes)
		if at == max(len(a.Bytes), len(b.Bytes)) {
			place += int64(at)
			continue
		}
		return Difference{
			Section: owner(&a, &b), Byte: place + int64(at), Message: i, From: excerpt(a.Bytes, at), To: excerpt(b.Bytes, at),
		}
	}
	return Difference{}
}

// common is how many bytes both begin with.
func common[T ~string | ~[]byte](a, b T) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// owner is the section that owns the first difference of two messages: that of the newer
// one, if there is one.
func owner(a, b *Written) string {
	m := b
	if b.Bytes == nil {
		m = a
	}
	if len(m.Pieces) == 0 {
		return ""
	}
	at := common(a.Content, b.Content)
	if at == len(a.Content) && at == len(b.Content) || a.Bytes == nil || b.Bytes == nil {
		return m.Pieces[0].Section // something else of the message differs
	}
	for _, p := range m.Pieces {
		if at -= p.Bytes; at < 0 {
			return p.Section
		}
	}
	return m.Pieces[len(m.Pieces)-1].Section
}

func excerpt(s []byte, at int) string {
	return text.Head(strings.ToValidUTF8(string(s[at:min(len(s), at+ExcerptBytes)]), ""), ExcerptBytes)
}
