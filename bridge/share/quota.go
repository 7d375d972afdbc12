package share

import "sync/atomic"

// Quota knows which tenants are over their share of something that is measured from time
// to time. All methods are safe for concurrent use; with a nil Quota nobody is.
type Quota struct {
	name, setting string
	over          atomic.Pointer[map[string]*ExhaustedError]
}

// NewQuota returns a quota. name says in the plural what is measured, and setting is what
// an operator raises for more.
func NewQuota(name, setting string) *Quota { return &Quota{name: name, setting: setting} }

// Measured sets how much of total each tenant uses. While more than 15/16 of total is
// used, tenants above the max-min fair share (Level) are over their share. alone says that
// there is one tenant only, which may use all of total.
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
