package tokens

import "fmt"

// pairSet knows what two tokens merge into. A slot holds both and their sum.
type pairSet struct {
	slot  []uint64
	shift int
}

func newPairSet(entries int) pairSet {
	n := slots(entries)
	return pairSet{make([]uint64, n), shiftOf(n)}
}

func (p *pairSet) add(left, right, sum token) {
	key := uint64(left)<<tokenBits | uint64(right)
	i := key * spread1 >> p.shift
	for p.slot[i] != 0 {
		i = (i + 1) & uint64(len(p.slot)-1)
	}
	p.slot[i] = key<<tokenBits | uint64(sum)
}

// sum returns what two tokens merge into, or noToken.
func (p *pairSet) sum(left, right token) token {
	key := uint64(left)<<tokenBits | uint64(right)
	for i := key * spread1 >> p.shift; p.slot[i] != 0; i = (i + 1) & uint64(len(p.slot)-1) {
		if p.slot[i]>>tokenBits == key {
			return token(p.slot[i]) & maxTokens
		}
	}
	return noToken
}

// addMerges finds for each token the two it is merged from. Lower tokens come
// first, because what they are made of decides about the higher ones.
func (v *vocabulary) addMerges() error {
	for i, t := range v.tree.single {
		if t == noToken {
			return fmt.Errorf("byte %#x is no token", i)
		}
	}
	n := v.size()
	v.pairs = newPairSet(n)
	v.left, v.right = make([]token, n), make([]token, n)
	for t := range token(n) {
		v.left[t], v.right[t] = t, t
	}
	for t := range token(n) {
		v.addMerge(t)
	}
	return nil
}

func (v *vocabulary) addMerge(t token) {
	text := string(v.bytes(t))
	for left := v.shorter[t]; left != noToken; left = v.shorter[left] {
		right := v.tree.find(v, text[v.length[left]:])
		if left < t && right < t && v.made(left) && v.made(right) && v.adjacent(left, right) {
			v.left[t], v.right[t] = left, right
			v.pairs.add(left, right, t)
			return
		}
	}
}

// made reports whether a token comes out of merging. Others are only ever a
// whole piece.
func (v *vocabulary) made(t token) bool { return v.length[t] == 1 || v.left[t] != t }

// adjacent reports whether two tokens stay side by side: whether merging their
// bytes gives just them again. It undoes their merges, the last one first. Where
// two tokens at the seam would have merged before the undone merge, they
// would have taken the bytes away from it.
func (v *vocabulary) adjacent(left, right token) bool {
	limit := noToken
	for {
		if v.pairs.sum(left, right) < limit {
			return false
		}
		if left > right {
			if limit, left = left, v.right[left]; left != limit {
				continue
			}
			if limit, right = right+1, v.left[right]; right+1 == limit {
				return true
			}
			continue
		}
		if limit, right = right+1, v.left[right]; right+1 != limit {
			continue
		}
		if limit, left = left, v.right[left]; left == limit {
			return true
		}
	}
}

// behind returns the longest beginning of next that is a token and may stand
// behind last, or noToken. It remembers its answers, because in a run of one
// character the same tokens meet again and again.
func (s *scratch) behind(v *vocabulary, last, next token) token {
	if last == noToken || next == noToken {
		return next
	}
	key := (uint64(last)<<tokenBits | uint64(next)) + 1 // so that none is zero
	seam := &s.seams[key*spread1>>(64-seamBits)]
	if *seam>>tokenBits != key {
		for next != noToken && !v.adjacent(last, next) {
			next = v.shorter[next]
		}
		*seam = key<<tokenBits | uint64(next)&maxTokens
	}
	if found := token(*seam & maxTokens); found != maxTokens {
		return found
	}
	return noToken
}

// merge leaves the tokens of a piece in the scratch. It takes the longest token
// that may stand behind the one before, and goes back where none may: the
// sequence in which all neighbours are adjacent is what merging pair by pair
// gives, and there is only one. No place is tried again once it is known to lead
// nowhere, so the time is linear in the piece.
func (v *vocabulary) merge(piece string, s *scratch) {
	s.tokens = s.tokens[:0]
	s.dead = append(s.dead[:0], make([]uint64, len(piece)/64+1)...)
	last, next := noToken, v.tree.longest(piece)
	for at := 0; at < len(piece); {
		next = s.behind(v, last, next)
		for next != noToken && s.isDead(at+int(v.length[next])) {
			next = s.behind(v, last, v.shorter[next])
		}
		if next != noToken {
			s.tokens = append(s.tokens, next)
			at += int(v.length[next])
			last = next
			if at < len(piece) {
				next = v.tree.longest(piece[at:])
			}
			continue
		}
		s.dead[at/64] |= 1 << (at % 64)
		at -= int(v.length[last])
		next = v.shorter[last]
		s.tokens = s.tokens[:len(s.tokens)-1]
		last = noToken
		if n := len(s.tokens); n > 0 {
			last = s.tokens[n-1]
		}
	}
}

func (s *scratch) isDead(at int) bool { return s.dead[at/64]>>(at%64)&1 != 0 }
