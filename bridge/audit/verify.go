package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// LoggedHead is a head as it was logged.
type LoggedHead struct {
	Tenant      string
	Epoch, Link uint64
	Digest      [32]byte
}

// headFields matches the fields of a logged head, in the text form and the JSON form of the
// logger.
var headFields = regexp.MustCompile(`"?(tenant|epoch|link|digest)"?[=:]"?((?:[^" ,}\\]|\\.)+)"?`)

// maxLogLine bounds a line of a log.
const maxLogLine = 1 << 20

// FindHeads reads the heads out of a server's log.
func FindHeads(log io.Reader) ([]LoggedHead, error) {
	var heads []LoggedHead
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxLogLine)
	for lines.Scan() {
		at := bytes.Index(lines.Bytes(), []byte(headMessage+`"`))
		if at < 0 {
			continue
		}
		var h LoggedHead
		fields := 0
		for _, m := range headFields.FindAllSubmatch(lines.Bytes()[at:], -1) {
			if h.set(string(m[1]), string(m[2])) {
				fields++
			}
		}
		if fields == 4 {
			heads = append(heads, h)
		}
	}
	return heads, lines.Err()
}

func (h *LoggedHead) set(field, value string) bool {
	var err error
	switch field {
	case "tenant":
		h.Tenant = value
		if unquoted, e := strconv.Unquote(`"` + value + `"`); e == nil {
			h.Tenant = unquoted
		}
	case "epoch":
		h.Epoch, err = strconv.ParseUint(value, 10, 64)
	case "link":
		h.Link, err = strconv.ParseUint(value, 10, 64)
	case "digest":
		var n int
		n, err = hex.Decode(h.Digest[:], []byte(value))
		return err == nil && n == len(h.Digest)
	}
	return err == nil
}

// Report is what a verification came to.
type Report struct {
	Tenants, Links int
	// Records are there and as they were sealed. Removed were deleted by age or erasure.
	// Unsealed were written since the last link, by a server that was killed.
	Records, Removed, Unsealed int
	// Heads were compared.
	Heads int
	// Found is what is wrong, in words; nothing when all is well. It holds at most
	// MaxFound.
	Found []string
	// More is how many findings are not in Found.
	More int
}

// MaxFound bounds the findings of a report.
const MaxFound = 1000

func (r *Report) add(format string, args ...any) {
	if len(r.Found) == MaxFound {
		r.More++
		return
	}
	r.Found = append(r.Found, fmt.Sprintf(format, args...))
}

// Verify compares the records and links of all tenants with each other, and with heads that
// were logged.
func Verify(ctx context.Context, from kv.Reader, heads []LoggedHead) (Report, error) {
	var r Report
	tenants, err := Tenants(ctx, from)
	if err != nil {
		return r, err
	}
	for _, h := range heads {
		if !slices.Contains(tenants, h.Tenant) {
			tenants = append(tenants, h.Tenant)
		}
	}
	for _, tenant := range tenants {
		v := verifier{from: from, tenant: tenant, report: &r, heads: map[recordPlace]digest{}}
		if err := v.run(ctx, heads); err != nil {
			return r, fmt.Errorf("audit: verify %s: %w", tenant, err)
		}
	}
	r.Tenants, r.Heads = len(tenants), len(heads)
	return r, nil
}

// verifier verifies one tenant.
type verifier struct {
	from    kv.Reader
	tenant  string
	report  *Report
	removed []recordSpan           // by any link
	heads   map[recordPlace]digest // of each link
	last    map[uint64]uint64
}

func (v *verifier) run(ctx context.Context, heads []LoggedHead) error {
	if err := v.links(ctx); err != nil {
		return err
	}
	slices.SortFunc(v.removed, func(a, b recordSpan) int { return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.first, b.first)) })
	joined := v.removed[:0]
	for _, s := range v.removed {
		if n := len(joined); n > 0 && joined[n-1].epoch == s.epoch && s.first <= joined[n-1].last+1 {
			joined[n-1].last = max(joined[n-1].last, s.last)
			continue
		}
		joined = append(joined, s)
	}
	v.removed = joined
	for _, h := range heads {
		if h.Tenant != v.tenant {
			continue
		}
		switch found, ok := v.heads[recordPlace{h.Epoch, h.Link}]; {
		case !ok:
			v.report.add("%s: link %d of epoch %d, whose head was logged, is missing: the end was cut off", v.tenant, h.Link, h.Epoch)
		case found != h.Digest:
			v.report.add("%s: link %d of epoch %d does not have the digest that was logged", v.tenant, h.Link, h.Epoch)
		}
	}
	if err := v.records(ctx); err != nil {
		return err
	}
	return v.rest(ctx)
}

// links checks the chain, and collects the removals.
func (v *verifier) links(ctx context.Context) error {
	v.last = map[uint64]uint64{}
	var before link
	for pair, err := range v.from.Scan(ctx, kv.System, all(v.tenant, tagLink)) {
		if err != nil {
			return err
		}
		l, err := decodeLink(pair.Key, pair.Value)
		if err != nil {
			v.report.add("%s: link %d of epoch %d: %v", v.tenant, l.number, l.epoch, err)
			before = l
			continue
		}
		v.report.Links++
		v.follows(before, l)
		v.removed = append(v.removed, l.removed...)
		v.heads[l.recordPlace], v.last[l.epoch] = l.head, l.last
		before = l
		before.records = nil
	}
	return nil
}

func (v *verifier) wasRemoved(p recordPlace) bool {
	i, found := slices.BinarySearchFunc(v.removed, p, func(s recordSpan, p recordPlace) int {
		return cmp.Or(cmp.Compare(s.epoch, p.epoch), cmp.Compare(s.first, p.number))
	})
	return found || i > 0 && v.removed[i-1].has(p)
}

// follows checks that a link stands behind the one before it.
func (v *verifier) follows(before, l link) {
	number, first := uint64(1), uint64(1)
	if before.epoch == l.epoch {
		number, first = before.number+1, before.last+1
	}
	if l.beside && l.number == 1 && before.epoch != l.epoch {
		// It follows a link of another server, which may have gone on since.
		switch head, ok := v.heads[l.before]; {
		case l.before == (recordPlace{}) && l.prev == (digest{}):
			before = link{}
		case ok && l.before.epoch < l.epoch:
			before = link{recordPlace: l.before, head: head}
		}
	}
	switch {
	case l.number != number || l.before != before.recordPlace:
		v.report.add("%s: before link %d of epoch %d links are missing", v.tenant, l.number, l.epoch)
	case l.prev != before.head:
		v.report.add("%s: link %d of epoch %d does not continue the link before it", v.tenant, l.number, l.epoch)
	case l.first != first:
		v.report.add("%s: link %d of epoch %d begins at record %d, not at %d", v.tenant, l.number, l.epoch, l.first, first)
	}
}

// records compares the records with the links, in one pass over both.
func (v *verifier) records(ctx context.Context) error {
	for pair, err := range v.from.Scan(ctx, kv.System, all(v.tenant, tagLink)) {
		if err != nil {
			return err
		}
		l, err := decodeLink(pair.Key, pair.Value)
		if err != nil || len(l.records) == 0 && l.last < l.first {
			continue
		}
		if err := v.sealedBy(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// sealedBy compares the records of one link.
func (v *verifier) sealedBy(ctx context.Context, l link) error {
	expected := make(map[uint64]digest, len(l.records))
	for _, r := range l.records {
		expected[r.number] = r.digest
	}
	keys := kv.Range{
		Start: keyOf(v.tenant, tagRecord, recordPlace{l.epoch, l.first}), End: keyOf(v.tenant, tagRecord, recordPlace{l.epoch, l.last + 1}),
	}
	for pair, err := range v.from.Scan(ctx, kv.System, keys) {
		if err != nil {
			return err
		}
		_, p := placeOf(pair.Key)
		switch want, ok := expected[p.number]; {
		case !ok:
			v.report.add("%s: record %d of epoch %d was added", v.tenant, p.number, p.epoch)
		case want != digestOf(pair.Key, pair.Value):
			v.report.add("%s: record %d of epoch %d was changed", v.tenant, p.number, p.epoch)
		default:
			v.report.Records++
		}
		delete(expected, p.number)
	}
	for _, r := range l.records {
		if _, missing := expected[r.number]; !missing {
			continue
		}
		p := recordPlace{l.epoch, r.number}
		if v.wasRemoved(p) {
			v.report.Removed++
			continue
		}
		v.report.add("%s: record %d of epoch %d is missing", v.tenant, p.number, p.epoch)
	}
	return nil
}

// rest looks at every other key: records behind the links, the epoch, and what should not
// be there.
func (v *verifier) rest(ctx context.Context) error {
	newest, epoch := uint64(0), uint64(0)
	for pair, err := range v.from.Scan(ctx, kv.System, kv.Prefix(scopeOf(v.tenant).AppendPrefix(nil))) {
		if err != nil {
			return err
		}
		tag, p := placeOf(pair.Key)
		newest = max(newest, p.epoch)
		switch {
		case tag == tagLink:
		case tag == tagRecord && p.number > 0 && p.number > v.last[p.epoch]:
			v.report.Unsealed++
		case tag == tagRecord && p.number > 0:
		case bytes.Equal(pair.Key, epochKey(v.tenant)):
			if epoch, err = decodeEpoch(v.tenant, pair.Value); err != nil {
				v.report.add("%s: the number of the epoch was changed", v.tenant)
				epoch = 1<<64 - 1
			}
		default:
			v.report.add("%s: unknown key in the audit: %x", v.tenant, pair.Key)
		}
	}
	if newest > epoch {
		v.report.add("%s: there is epoch %d, but the last that was begun is %d", v.tenant, newest, epoch)
	}
	return nil
}
