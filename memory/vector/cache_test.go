package vector

import "testing"

// sized is a part of that many bytes.
type sized int

func (s sized) bytes() int { return int(s) }

func blockKey(of byte, id uint32) cacheKey { return cacheKey{part: of, id: id} }

// fineOf returns fine codes of about that many bytes.
func fineOf(bytes int) *fineCodes { return newFineCodes(1, bytes-newFineCodes(1, 0).bytes()) }

// missed searches for the fine codes of some blocks, and pays what they cost.
func (c *partCache) missed(sizes int, ids ...uint32) (loaded int) {
	keys, bytes := make([]cacheKey, len(ids)), make([]int, len(ids))
	for i, id := range ids {
		keys[i], bytes[i] = blockKey(partFine, id), sizes
	}
	found, missing := c.getFine(keys, bytes)
	for _, i := range missing {
		c.putFine(keys[i], fineOf(sizes))
	}
	for i, key := range keys {
		if found[i] == nil {
			c.owe(key, 1)
		}
	}
	return len(missing)
}

// Fine codes come in when they have cost as much as they would have.
func TestFineCodesPay(t *testing.T) {
	c := newPartCache(100 * readWorth)
	for i, want := range []int{0, 0, 0, 1, 0} {
		if got := c.missed(3*readWorth, 1); got != want {
			t.Errorf("search %d reads fine codes of %d blocks, want %d", i, got, want)
		}
	}
}

// Where there is no room for all, those that are there stay, and are not read
// again and again. When nobody wants them any more, others take their place.
func TestFineCodesStay(t *testing.T) {
	const size = 2 * readWorth
	c := newPartCache(20 * readWorth) // 15 for fine codes: 7 blocks
	ids := []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	total := 0
	for range 30 {
		total += c.missed(size, ids...)
	}
	if total != 7 {
		t.Errorf("fine codes of %d blocks were read, want 7", total)
	}
	for range 10 {
		total += c.missed(size, 11, 12)
	}
	if total != 9 {
		t.Errorf("fine codes of %d blocks were read in all, want 9", total)
	}
}

// Fine codes give way to what every search needs, and the sum is right.
func TestCacheBytes(t *testing.T) {
	c := newPartCache(4000)
	for id := range uint32(10) {
		c.putFine(blockKey(partFine, id), fineOf(500))
	}
	if c.bytes() != 3000 || c.fine.Weight() != 3000 {
		t.Errorf("fine codes take %d of %d, want 3000", c.fine.Weight(), c.bytes())
	}
	for id := range uint32(7) {
		c.put(blockKey(partBlock, id), sized(500))
		c.put(blockKey(partBlock, id), sized(500))
	}
	if c.bytes() != 4000 || c.fine.Weight() != 500 {
		t.Errorf("beside blocks, fine codes take %d of %d, want 500 of 4000", c.fine.Weight(), c.bytes())
	}
	c.put(blockKey(partBlock, 99), sized(1001))
	for id := range uint32(20) {
		c.put(blockKey(partBlock, id), sized(500))
	}
	if c.bytes() != 4000 || c.fine.Weight() != 0 || c.parts.Len() != 8 {
		t.Errorf("there are %d blocks of %d bytes and %d of fine codes, want 8 of 4000 and 0", c.parts.Len(), c.bytes(), c.fine.Weight())
	}
}
