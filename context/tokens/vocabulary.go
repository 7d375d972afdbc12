package tokens

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// token numbers the tokens of a vocabulary in the order of their ranks, without
// gaps. A lower token is merged first.
type token = uint32

// noToken is no token.
const noToken token = 1<<32 - 1

// Limits of a vocabulary. The merge packs two tokens and their sum into 64 bits.
const (
	tokenBits   = 18
	maxTokens   = 1<<tokenBits - 1
	maxTokenLen = 255 // bytes
)

// vocabulary is what merging needs to know of an encoding. It is immutable.
type vocabulary struct {
	// text holds the bytes of all tokens; token t is text[start[t]:start[t+1]].
	text   []byte
	start  []uint32
	length []uint8

	whole wholeSet
	tree  *tree
	pairs pairSet
	// left and right are the two tokens that merge into a token: itself and
	// noToken where there are none. A token that no merge makes is only ever a
	// whole piece.
	left, right []token
	// shorter is the longest token that a token begins with, or noToken.
	shorter []token
}

// loadVocabulary builds the tables of one vocabulary from its file of ranks,
// which is compiled in.
func loadVocabulary(name string) (*vocabulary, error) {
	file, err := assets.Assets.ReadFile(name + ".tiktoken")
	if err != nil {
		return nil, fmt.Errorf("read vocabulary: %w", err)
	}
	v := &vocabulary{}
	if err := v.parse(file); err != nil {
		return nil, fmt.Errorf("vocabulary %s: %w", name, err)
	}
	var group sync.WaitGroup
	group.Go(func() { v.whole = newWholeSet(v) })
	defer group.Wait()
	v.tree, v.shorter = newTree(v)
	if err := v.addMerges(); err != nil {
		return nil, fmt.Errorf("vocabulary %s: %w", name, err)
	}
	return v, nil
}

// parse reads lines of a token in base64, a space and its rank, which must rise
// and may have gaps.
func (v *vocabulary) parse(file []byte) error {
	last := -1
	v.text = make([]byte, 0, len(file)/2)
	for line := range bytes.Lines(file) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) == 0 {
			continue
		}
		encoded, digits, _ := bytes.Cut(line, []byte(" "))
		rank, err := strconv.Atoi(string(digits))
		if err != nil || rank <= last {
			return fmt.Errorf("rank %q behind %d", digits, last)
		}
		last = rank
		v.start = append(v.start, uint32(len(v.text)))
		if v.text, err = base64.StdEncoding.AppendDecode(v.text, encoded); err != nil {
			return fmt.Errorf("token of rank %d: %w", rank, err)
		}
		size := len(v.text) - int(v.start[len(v.start)-1])
		if size == 0 || size > maxTokenLen {
			return fmt.Errorf("token of rank %d has %d bytes", rank, size)
		}
		v.length = append(v.length, uint8(size))
	}
	if v.size() == 0 || v.size() > maxTokens {
		return fmt.Errorf("%d tokens", v.size())
	}
	v.start = append(v.start, uint32(len(v.text)))
	v.text, v.start, v.length = slices.Clip(v.text), slices.Clip(v.start), slices.Clip(v.length)
	return nil
}

// size is the number of tokens.
func (v *vocabulary) size() int { return len(v.length) }

// bytes returns the bytes of a token, which belong to the vocabulary.
func (v *vocabulary) bytes(t token) []byte { return v.text[v.start[t]:v.start[t+1]] }
