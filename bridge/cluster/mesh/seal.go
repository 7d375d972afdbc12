package mesh

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// A sealed frame is the version, the salt of its sender's life, a number, and the
// ciphertext. The key is made of the secret, the group and the salt, so that no two lives
// share one; the number is the nonce, and never comes twice.
const (
	sealVersion = 1
	saltBytes   = 16
	headBytes   = 1 + saltBytes + 8
	tagBytes    = 16
	// maxSalts bounds the senders whose keys are kept.
	maxSalts = 4 * MaxPeers
)

type salt [saltBytes]byte

// sealer seals frames and opens frames of others. Sealing is for one goroutine at a time,
// and so is opening.
type sealer struct {
	root   []byte
	salt   salt
	number uint64
	own    cipher.AEAD
	others map[salt]*sender
}

// sender is one life of a bridge, as its frames prove.
type sender struct {
	aead cipher.AEAD
	from Peer
	// all and own are the numbers of the last frames to all and to this bridge alone.
	// Each kind comes in order, so a lower number was heard before.
	all, own uint64
}

// newSealer makes the keys of a group. Without a secret they separate groups, but keep no
// one out.
func newSealer(group string, secret []byte) (*sealer, error) {
	root, err := hkdf.Key(sha256.New, secret, nil, "loom mesh 1 frames\x00"+group, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("mesh: %w", err)
	}
	s := &sealer{root: root, others: make(map[salt]*sender)}
	copy(s.salt[:], randomBytes(saltBytes))
	s.own, err = s.aeadOf(s.salt)
	return s, err
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

func (s *sealer) aeadOf(of salt) (cipher.AEAD, error) {
	key, err := hkdf.Expand(sha256.New, s.root, string(of[:]), sha256.Size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func nonceOf(number uint64) []byte {
	nonce := make([]byte, 12)
	binary.BigEndian.PutUint64(nonce[4:], number)
	return nonce
}

// next seals a frame under the next number.
func (s *sealer) next(plain []byte) []byte {
	s.number++
	out := make([]byte, headBytes, headBytes+len(plain)+tagBytes)
	out[0] = sealVersion
	copy(out[1:], s.salt[:])
	binary.BigEndian.PutUint64(out[1+saltBytes:], s.number)
	return s.own.Seal(out, nonceOf(s.number), plain, out[:headBytes])
}

// open returns what a frame holds, and who sealed it: nil if the sealer is not of the
// group.
func (s *sealer) open(sealed []byte) (plain []byte, by *sender, number uint64) {
	if len(sealed) < headBytes+tagBytes || len(sealed) > MaxFrameBytes || sealed[0] != sealVersion {
		return nil, nil, 0
	}
	of := salt(sealed[1 : 1+saltBytes])
	number = binary.BigEndian.Uint64(sealed[1+saltBytes:])
	by = s.others[of]
	if by == nil {
		aead, err := s.aeadOf(of)
		if err != nil {
			return nil, nil, 0
		}
		by = &sender{aead: aead}
	}
	plain, err := by.aead.Open(sealed[headBytes:headBytes], nonceOf(number), sealed[headBytes:], sealed[:headBytes])
	if err != nil {
		return nil, nil, 0
	}
	if s.others[of] == nil { // only who proved to be of the group takes room
		if len(s.others) >= maxSalts {
			clear(s.others) // of runs long ended; keys of live ones are learned again
		}
		s.others[of] = by
	}
	return plain, by, number
}

// fresh reports whether a frame from a peer is one that was not heard before.
func (s *sender) fresh(from Peer, toAll bool, number uint64) bool {
	if s.from.IsZero() {
		s.from = from
	}
	last := &s.own
	if toAll {
		last = &s.all
	}
	if s.from != from || number <= *last {
		return false
	}
	*last = number
	return true
}
