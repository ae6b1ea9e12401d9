// The door of the test kit. Nothing stands behind it yet: in tests, boot the app on a real server under a prefix of its own.
export {};
