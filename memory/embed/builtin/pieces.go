package builtin

import (
	"bytes"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// Pieces that stand for no text, and how many there are.
const (
	unknownPiece = 0
	beginPiece   = 1
	endPiece     = 2
	pieceCount   = 128000
	// unknownCost is how much worse than the worst piece an unknown character is.
	unknownCost = 10
	// blank stands for a space.
	blank = "\u2581"
)

// pieces cuts texts into pieces, as SentencePiece does.
type pieces struct {
	labels  []byte
	first   []uint32
	found   []int32
	scores  []float32
	unknown float64
	units   []uint32
	texts   []byte
}

func newPieces(parts [partCount][]byte) pieces {
	p := pieces{
		labels: parts[partLabels], first: view[uint32](parts[partFirst]), found: view[int32](parts[partFound]),
		scores: view[float32](parts[partScores]), units: view[uint32](parts[partUnits]), texts: parts[partTexts],
	}
	p.unknown = float64(slices.Min(p.scores)) - unknownCost
	return p
}

// cut returns the pieces of a text: those whose scores have the highest sum. There is
// always one.
func (p *pieces) cut(text string) []int32 {
	normal := p.normal(strings.ToValidUTF8(text, ""))
	if len(normal) == 0 {
		return []int32{unknownPiece}
	}
	// The best way to each place: its score, where its last piece begins and which it is.
	best := make([]float64, len(normal)+1)
	begins, last := make([]int32, len(normal)+1), make([]int32, len(normal)+1)
	for i := range best[1:] {
		best[i+1] = math.Inf(-1)
	}
	reach := func(from, to int, piece int32, score float64) {
		if score += best[from]; score > best[to] {
			best[to], begins[to], last[to] = score, int32(from), piece
		}
	}
	for i := 0; i < len(normal); {
		_, size := utf8.DecodeRune(normal[i:])
		single := false
		node := uint32(0)
		for j := i; j < len(normal); j++ {
			next, ok := p.child(node, normal[j])
			if !ok {
				break
			}
			node = next
			if piece := p.found[node]; piece >= 0 {
				reach(i, j+1, piece, float64(p.scores[piece]))
				single = single || j+1 == i+size
			}
		}
		if !single {
			reach(i, i+size, unknownPiece, p.unknown)
		}
		i += size
	}
	var ids []int32
	for at := len(normal); at > 0; at = int(begins[at]) {
		ids = append(ids, last[at])
	}
	slices.Reverse(ids)
	return ids
}

// child returns the child of a node under a byte.
func (p *pieces) child(node uint32, label byte) (uint32, bool) {
	begin, end := p.first[node], p.first[node+1]
	labels := p.labels[begin:end]
	i := sort.Search(len(labels), func(i int) bool { return labels[i] >= label })
	return begin + uint32(i), i < len(labels) && labels[i] == label
}

// normal returns a text in the characters that pieces are made of: a blank before each
// word, and nothing at the end.
func (p *pieces) normal(text string) []byte {
	out := make([]byte, 0, len(text)+len(text)/4+len(blank))
	afterBlank := true
	for len(text) > 0 {
		become, size := p.become(text)
		text = text[size:]
		if afterBlank {
			become = bytes.TrimLeft(become, " ")
		}
		if len(become) == 0 {
			continue
		}
		if len(out) == 0 {
			out = append(out, blank...)
		}
		for _, b := range become {
			if b == ' ' {
				out = append(out, blank...)
			} else {
				out = append(out, b)
			}
		}
		afterBlank = become[len(become)-1] == ' '
	}
	for bytes.HasSuffix(out, []byte(blank)) {
		out = out[:len(out)-len(blank)]
	}
	return out
}

// Bits of a unit of the double array: its label, whether a value hangs on it, and where
// its children are.
const (
	unitLabel    = 0x800000ff
	unitHasValue = 0x100
	unitFar      = 0x200
	unitValue    = 0x7fffffff
)

func children(unit uint32) uint32 { return unit >> 10 << (unit & unitFar >> 6) }

// become returns what the longest beginning of a text that the map has becomes, and how
// long that is; where it has none, the first character.
func (p *pieces) become(text string) ([]byte, int) {
	size, value := 0, uint32(0)
	node := children(p.units[0])
	for i := range len(text) {
		node ^= uint32(text[i])
		if int(node) >= len(p.units) {
			break
		}
		unit := p.units[node]
		if unit&unitLabel != uint32(text[i]) {
			break
		}
		node ^= children(unit)
		if unit&unitHasValue != 0 {
			size, value = i+1, p.units[node]&unitValue
		}
	}
	if size == 0 || int(value) >= len(p.texts) {
		_, size = utf8.DecodeRuneInString(text)
		return []byte(text[:size]), size
	}
	become := p.texts[value:]
	return become[:max(0, bytes.IndexByte(become, 0))], size
}
