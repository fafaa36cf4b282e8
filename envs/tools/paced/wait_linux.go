package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// newSleep gives what waits by a timer of the kernel's, for one goroutine: time.Sleep waits in steps of 1 ms on Linux
// (golang/go#53824), which sends requests late by up to that and some in pairs. The timer is read as a response is, by
// the poller, so that no thread is kept from handling responses meanwhile.
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
