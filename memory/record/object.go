package record

import "time"

// Object is all that is known of a record but its vector, as a JSON object.
func Object(r Record) map[string]any {
	document := map[string]any{
		"id": r.ID, "text": r.Text, "kind": r.Kind, "importance": r.Importance, "origin": r.Origin.String(), "tier": r.Tier, "version": r.Version,
	}
	for name, text := range map[string]string{
		"key": r.Key, "session_id": r.SessionID, "author": r.Author, "supersedes": r.Supersedes, "superseded_by": r.SupersededBy,
	} {
		if text != "" {
			document[name] = text
		}
	}
	for name, at := range map[string]time.Time{
		"event_time": r.EventTime, "create_time": r.CreateTime, "update_time": r.UpdateTime, "expire_time": r.ExpireTime, "superseded_time": r.SupersededTime,
		"archive_time": r.ArchiveTime, "last_repeat_time": r.LastRepeatTime,
	} {
		if !at.IsZero() {
			document[name] = at.UTC().Format(time.RFC3339Nano)
		}
	}
	for name, set := range map[string]bool{"pinned": r.Pinned, "archived": r.Archived} {
		if set {
			document[name] = true
		}
	}
	if len(r.Tags) > 0 {
		document["tags"] = r.Tags
	}
	if len(r.DerivedFrom) > 0 {
		document["derived_from"] = r.DerivedFrom
	}
	if len(r.Metadata) > 0 {
		document["metadata"] = r.Metadata
	}
	if r.Repeats > 0 {
		document["repeats"] = r.Repeats
	}
	if r.SlidingTTL > 0 {
		document["sliding_ttl"] = r.SlidingTTL.String()
	}
	return document
}
