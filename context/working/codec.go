package working

import (
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Fields of a stored Working (memory/FORMAT.md), and of an item of its plan.
const (
	fieldGoal = iota + 1
	fieldItem
	fieldActive
	fieldInactive

	fieldItemText   = 1
	fieldItemStatus = 2
)

// Encode is what is stored of it; nothing of an empty one.
func Encode(w Working) []byte {
	dst := wire.AppendText(nil, fieldGoal, w.Goal)
	for _, item := range w.Plan {
		body := wire.AppendText(nil, fieldItemText, item.Text)
		dst = wire.AppendItem(dst, fieldItem, wire.AppendUint(body, fieldItemStatus, uint64(item.Status)))
	}
	for _, name := range w.Active {
		dst = wire.AppendItem(dst, fieldActive, name)
	}
	for _, name := range w.Inactive {
		dst = wire.AppendItem(dst, fieldInactive, name)
	}
	return dst
}

// Decode reads what Encode wrote. A status that a later version wrote is Pending.
func Decode(value []byte) (Working, error) {
	var w Working
	for f, err := range wire.Fields(value) {
		if err != nil {
			return Working{}, fmt.Errorf("working: decode: %w", err)
		}
		switch f.Number {
		case fieldGoal:
			w.Goal = string(f.Bytes)
		case fieldItem:
			item, err := decodeItem(f.Bytes)
			if err != nil {
				return Working{}, err
			}
			w.Plan = append(w.Plan, item)
		case fieldActive:
			w.Active = append(w.Active, string(f.Bytes))
		case fieldInactive:
			w.Inactive = append(w.Inactive, string(f.Bytes))
		}
	}
	return w, nil
}

func decodeItem(value []byte) (Item, error) {
	var item Item
	for f, err := range wire.Fields(value) {
		if err != nil {
			return Item{}, fmt.Errorf("working: decode item: %w", err)
		}
		switch f.Number {
		case fieldItemText:
			item.Text = string(f.Bytes)
		case fieldItemStatus:
			if f.Value <= uint64(Failed) {
				item.Status = Status(f.Value)
			}
		}
	}
	return item, nil
}
