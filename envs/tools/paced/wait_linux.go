package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// newSleep returns a function that waits by a kernel timer, for one goroutine. time.Sleep has a resolution of 1 ms on
// Linux (golang/go#53824): requests would be up to 1 ms late, and some would be sent in pairs. The timer is read through
// the network poller, so no thread is blocked that could handle responses.
func newSleep() func(time.Duration) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return time.Sleep
	}
	timer := os.NewFile(uintptr(fd), "timer")
	var expirations [8]byte
	return func(wait time.Duration) {
		if wait <= 0 {
			return
		}
		once := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(wait))}
		if err := unix.TimerfdSettime(fd, 0, &once, nil); err == nil {
			if _, err = timer.Read(expirations[:]); err == nil {
				return
			}
		}
		time.Sleep(wait)
	}
}
