package machine

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// dockerCapabilities are the capabilities of root in a default container.
var dockerCapabilities = []uint{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FSETID, unix.CAP_FOWNER, unix.CAP_MKNOD, unix.CAP_NET_RAW, unix.CAP_SETGID,
	unix.CAP_SETUID, unix.CAP_SETFCAP, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_KILL, unix.CAP_AUDIT_WRITE,
}

// contain makes /proc that of the container, masked, and turns its loopback on.
func contain() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	for _, place := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug"} {
		if err := unix.Mount("/dev/null", place, "", unix.MS_BIND, ""); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("%s: %w", place, err)
		}
	}
	for _, place := range []string{"/proc/acpi", "/proc/scsi", "/sys/firmware"} {
		if err := unix.Mount("tmpfs", place, "tmpfs", unix.MS_RDONLY, ""); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("%s: %w", place, err)
		}
	}
	for _, place := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/sys"} {
		err := unix.Mount(place, place, "", unix.MS_BIND|unix.MS_REC, "")
		if err == nil {
			err = unix.Mount("", place, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("%s: %w", place, err)
		}
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

// takeRights leaves root the capabilities of a container, and others none.
func takeRights(user int) error {
	var keep [2]uint32
	for _, c := range dockerCapabilities {
		keep[c/32] |= 1 << (c % 32)
	}
	for c := range uint(64) {
		if keep[c/32]&(1<<(c%32)) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); errors.Is(err, syscall.EINVAL) {
			break // there are no more
		} else if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if user != 0 {
		return become(user)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: keep[0], Permitted: keep[0]}, {Effective: keep[1], Permitted: keep[1]}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	if os.Geteuid() != 0 {
		return errors.New("a container takes root to make")
	}
	return nil
}
