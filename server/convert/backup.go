package convert

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Backup describes a copy of the store.
func Backup(b backup.Backup) *loombridgev1.Backup {
	return &loombridgev1.Backup{
		Name: b.Name, CreateTime: timestamppb.New(b.Time), Bytes: b.Bytes, NewBytes: b.NewBytes,
	}
}

// BackupStatus says how the backups go.
func BackupStatus(r backup.Report) *loombridgev1.BackupStatus {
	status := &loombridgev1.BackupStatus{Failing: r.Problem != nil}
	if r.Last.Name != "" {
		status.Last = Backup(r.Last)
	}
	return status
}
