package share

import "sync/atomic"

// Quota knows which tenants have more than their share of something that is measured
// now and then. All methods are safe for concurrent use; nil knows of none.
type Quota struct {
	name, setting string
	over          atomic.Pointer[map[string]*ExhaustedError]
}

// NewQuota returns a quota of what name says in the plural, which an operator extends
// by a setting.
func NewQuota(name, setting string) *Quota { return &Quota{name: name, setting: setting} }

// Measured sets what each tenant has of total. While more than 15 of 16 parts are
// used, those with more than an equal share, and what others leave of theirs, are
// over it; a tenant that is there alone may have it all.
func (q *Quota) Measured(sizes map[string]int64, total int64, alone bool) {
	all := make([]int64, 0, len(sizes))
	for _, size := range sizes {
		all = append(all, size)
	}
	usable := total
	if !alone {
		usable -= total / kept
	}
	level := Level(all, usable)
	over := make(map[string]*ExhaustedError)
	for tenant, size := range sizes {
		if size > level {
			over[tenant] = &ExhaustedError{
				Pool: q.name, Setting: q.setting, Quota: true, Whose: ByTenant, Name: tenant, Held: size, Total: total,
			}
		}
	}
	q.over.Store(&over)
}

// Check returns an *ExhaustedError for a tenant that is over its share.
func (q *Quota) Check(tenant string) error {
	if q == nil {
		return nil
	}
	over := q.over.Load()
	if over == nil {
		return nil
	}
	if e := (*over)[tenant]; e != nil {
		return e
	}
	return nil
}
