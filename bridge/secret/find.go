package secret

import (
	"bytes"
	"cmp"
	"slices"
)

const (
	// maxEscapes is how many times over escapes are undone: JSON in JSON in a URL.
	maxEscapes = 3
	// base64Window is how many characters MinBytes bytes take at most, at any alignment.
	base64Window = 12
	// wrappedLine is the least length of a line of base64 that goes on in the next one.
	wrappedLine = 16
	// hexWindow is how many digits MinBytes bytes take.
	hexWindow = 2 * MinBytes
)

// span is a part of a text.
type span struct{ from, to int }

// unescaped is a text with its escapes undone so many times. The byte i of it is that of the
// original from at[i] on; nil for the original itself.
type unescaped struct {
	text []byte
	at   []int
	size int // of the original
}

func (v unescaped) from(i int) int {
	switch {
	case i >= len(v.text):
		return v.size
	case v.at == nil:
		return i
	}
	return v.at[i]
}

// to is where the original of the byte before i ends.
func (v unescaped) to(i int) int {
	for i < len(v.text) && i > 0 && v.at != nil && v.at[i] == v.at[i-1] {
		i++ // several bytes of one escape
	}
	return v.from(i)
}

// find returns the parts of data that hold values, and from where on its end may be the
// beginning of one unless it is the end of all.
func (m *Mask) find(data []byte, end bool) (found []span, open int) {
	open = len(data)
	v := unescaped{text: data, size: len(data)}
	for escapes := 0; ; escapes++ {
		m.look(v, &found, &open)
		if escapes == maxEscapes {
			break
		}
		next, changed := v.unescaped(end)
		open = min(open, next.from(len(next.text)))
		if !changed && next.size == v.size {
			break
		}
		v = next
	}
	return merged(found), open
}

// merged sorts spans, and joins touching ones.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// look looks through a view: at its bytes, and at what they are as base64 and as hexadecimal
// digits.
func (m *Mask) look(v unescaped, found *[]span, open *int) {
	add := func(from, to int) { *found = append(*found, span{v.from(from), v.to(to)}) }
	var plain uint64
	for i, c := range v.text {
		plain = plain<<8 | uint64(lowered[c])
		if m.has(plain) && i+1 >= MinBytes {
			add(i+1-MinBytes, i+1)
		}
	}
	*open = min(*open, v.from(m.begun(v.text)), v.from(m.base64(v.text, add)), v.from(m.hex(v.text, add)))
}

// base64 looks at what a text is as base64, and returns where a window may begin that ends
// later.
func (m *Mask) base64(text []byte, add func(from, to int)) int {
	const least = base64Window - 1
	for from := 0; from < len(text); {
		to := from
		for to < len(text) && sextets[text[to]] >= 0 {
			to++
		}
		if to-from < least {
			if to == len(text) {
				return from
			}
			from = to + 1
			continue
		}
		run := base64Run{}
		for ; from < len(text); from++ {
			if run.take(from, text[from]); run.count == 0 {
				break
			}
			for shift := 0; shift <= 4 && run.end == from+1; shift += 2 {
				if 6*run.count >= 8*MinBytes+shift && m.has(lowerAll(run.window(shift))) {
					add(run.at[(run.count-(8*MinBytes+shift+5)/6)%len(run.at)], from+1)
				}
			}
		}
		if from == len(text) {
			return run.first()
		}
	}
	return len(text)
}

// hex is base64 for hexadecimal digits.
func (m *Mask) hex(text []byte, add func(from, to int)) int {
	for from := 0; from < len(text); {
		if digits[text[from]] < 0 || from+1 < len(text) && digits[text[from+1]] < 0 && lower(text[from+1]) != 'x' {
			from++
			continue
		}
		run := hexRun{}
		for begin := from; from < len(text); from++ {
			if run.take(from, text[from]); run.count == 0 && from > begin+1 {
				break
			}
			if run.count >= hexWindow && run.apart == 0 && m.has(lowerAll(run.bits)) {
				add(run.at[(run.count-hexWindow)%len(run.at)], from+1)
			}
		}
		if from == len(text) {
			if run.count == 0 {
				return 1 << 60
			}
			return run.at[(run.count-min(run.count, hexWindow))%len(run.at)]
		}
	}
	return len(text)
}

// begun is where the longest end of a text starts that may be the beginning of a window.
func (m *Mask) begun(text []byte) int {
	i := len(text)
	for i > 0 && i > len(text)-MinBytes+1 && (i == len(text) || m.follows(text[i-1], text[i])) {
		i--
	}
	if i == len(text)-1 && !m.starts(text[i]) {
		return len(text)
	}
	return i
}

// starts reports whether a part of a value goes on behind a byte.
func (m *Mask) starts(c byte) bool {
	for next := range 256 {
		if m.follows(c, byte(next)) {
			return true
		}
	}
	return false
}

// base64Run are the characters of base64 before a place.
type base64Run struct {
	high, low uint64 // the bits of the last characters
	count     int
	at        [base64Window + 4]int // where each of them stands
	end       int                   // behind the last
	line      int                   // characters of this line
	broken    bool                  // a line has ended, the next may go on
}

func (b *base64Run) take(i int, c byte) {
	v := sextets[c]
	switch {
	case v >= 0:
		if b.broken {
			b.line, b.broken = 0, false
		}
		b.at[b.count%len(b.at)] = i
		b.count++
		b.line++
		b.end = i + 1
		b.high, b.low = b.high<<6|b.low>>58, b.low<<6|uint64(v)
	case (c == '\n' || c == '\r') && (b.broken || b.line >= wrappedLine), b.broken && (c == ' ' || c == '\t'):
		b.broken = true
	default:
		b.count, b.line, b.broken = 0, 0, false
	}
}

// window are the eight bytes that end so many bits before the last one.
func (b *base64Run) window(shift int) uint64 {
	if shift == 0 {
		return b.low
	}
	return b.low>>shift | b.high<<(64-shift)
}

// first is where the characters stand that a window may begin with which ends later.
func (b *base64Run) first() int {
	if b.count == 0 {
		return 1 << 60
	}
	return b.at[(b.count-min(b.count, base64Window))%len(b.at)]
}

// sextets are the values of the characters of base64, of URLs, too; -1 for others.
var sextets = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = int8(i)
	}
	t['-'], t['_'] = 62, 63
	return t
}()

// hexRun are the hexadecimal digits before a place, with what stands between the bytes.
type hexRun struct {
	bits  uint64
	count int
	at    [hexWindow * 2]int // where each digit stands
	since int                // digits since something stood between them
	apart int                // bytes since the last digit
}

func (h *hexRun) take(i int, c byte) {
	v := digits[c]
	switch {
	case v >= 0:
		h.at[h.count%len(h.at)] = i
		h.count++
		h.since++
		h.apart = 0
		h.bits = h.bits<<4 | uint64(v)
	case (c == 'x' || c == 'X') && h.count > 0 && h.since == 1 && h.bits&15 == 0: // of 0x
		h.count--
		h.since, h.bits = 0, h.bits>>4
	case h.count > 0 && h.since%2 == 0 && h.apart < 3 && bytes.IndexByte([]byte(` :,;-.\xX%{}'"`), c) >= 0:
		h.since = 0
		h.apart++
	default:
		*h = hexRun{}
	}
}

// digits are the values of hexadecimal digits; -1 for others.
var digits = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	for i := range 10 {
		t['0'+i] = int8(i)
	}
	for i := range 6 {
		t['a'+i], t['A'+i] = int8(10+i), int8(10+i)
	}
	return t
}()
