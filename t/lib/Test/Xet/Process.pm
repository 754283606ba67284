package Test::Xet::Process;

# Copyright (C) the ngx_http_xet_module authors

# Starts, watches and ends processes, and reserves ports, for the whole harness.

use warnings;
use strict;

use parent qw/ Exporter /;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use IO::Socket::INET;
use JSON::PP ();
use POSIX qw/ :sys_wait_h /;
use Time::HiRes qw/ sleep time /;

our @EXPORT_OK = qw/
	alive build_dir children cmdline fds free_port module_table own owned
	patience reap root rss run_command slurp spawn spew wait_for
/;

# Child processes to end with this process; the values are the processes that
# started them, because a fork of the test must not end children of the test.

my %owner;

sub own {
	$owner{$_[0]} = $$;
}

sub owned {
	return ($owner{$_[0]} || 0) == $$;
}

# root of the repository, set at load time: __FILE__ may be a relative path

my $root = abs_path(dirname(__FILE__) . '/../../../..');

sub root {
	return $root;
}

sub build_dir {
	return $ENV{XET_BUILD} || "$root/build";
}

# Returns the rows of a table of the module: "routes" or "statements".

sub module_table {
	my ($name) = @_;

	my $tool = build_dir() . '/tools/xet_tables';
	my $json = `$tool $name`;

	die "$tool: $?\n" if $?;

	return JSON::PP::decode_json($json);
}

# Multiplies a timeout by a factor.  Sanitizers are slow, and so is a machine
# with more runnable processes than processors.

sub patience {
	return ($ENV{XET_TEST_PATIENCE} || load()) * $_[0];
}

my ($load, $load_at) = (1, 0);
my $processors;

sub load {
	return $load if time() < $load_at + 2;

	$processors ||= () = (slurp('/proc/cpuinfo', 1) // '')
		=~ /^processor\b/mg;

	my ($running) = (slurp('/proc/loadavg', 1) // '') =~ /^([\d.]+)/;

	$load = ($running || 0) / ($processors || 1);
	$load = $load < 1 ? 1 : $load > 10 ? 10 : $load;
	$load_at = time();

	return $load;
}

# Starts a program in the background, with its output in a file.  The program
# gets a signal when this process dies, for whatever reason.
#
#     user   user of the program, if this process runs as root
#     weak   run as root without the right to override file permissions
#     death  signal that it gets when this process dies; default TERM
#     stdin  file to read; default /dev/null

sub spawn {
	my ($command, %o) = @_;

	my @command = @$command;
	my @prefix;

	if (-x '/usr/bin/setpriv') {
		push @prefix, '--pdeathsig', $o{death} || 'TERM';
	}

	if ($o{user} && $> == 0) {
		my ($uid, $gid) = (getpwnam($o{user}))[2, 3];
		die "no user $o{user}\n" unless defined $uid;

		die "no setpriv to become $o{user} with\n" unless @prefix;
		push @prefix, "--reuid=$uid", "--regid=$gid", '--clear-groups';
	}

	if ($o{weak} && $> == 0) {
		die "no setpriv to be weak with\n" unless @prefix;
		push @prefix, '--bounding-set=-dac_override,-dac_read_search';
	}

	unshift @command, '/usr/bin/setpriv', @prefix if @prefix;

	my $pid = fork();
	die "fork() failed: $!\n" unless defined $pid;

	if ($pid == 0) {
		my $out = $o{output} || '/dev/null';

		open(STDIN, '<', $o{stdin} || '/dev/null') or POSIX::_exit(126);
		open(STDOUT, '>>', $out) or POSIX::_exit(126);
		open(STDERR, '>&', \*STDOUT) or POSIX::_exit(126);

		chdir($o{dir} || '/');
		$SIG{$_} = 'DEFAULT' for qw/ INT TERM PIPE ALRM CHLD /;
		$ENV{$_} = $o{env}{$_} for keys %{ $o{env} || {} };

		{ no warnings 'exec'; exec { $command[0] } @command; }
		print STDERR "cannot run $command[0]: $!\n";
		POSIX::_exit(127);
	}

	own($pid);

	return $pid;
}

# Waits for a child of spawn().  Returns its status as in $?, undef if it still
# runs after the timeout.

sub reap {
	my ($pid, $timeout) = @_;

	my $status;

	wait_for($timeout, sub {
		my $rc = waitpid($pid, WNOHANG);

		return 0 if $rc == 0;

		$status = $rc == $pid ? $? : 0;
		delete $owner{$pid};

		return 1;
	});

	return $status;
}

sub wait_for {
	my ($timeout, $done) = @_;

	my $end = time() + patience($timeout);
	my $pause = 0.002;

	while (1) {
		my $result = $done->();
		return $result if $result;

		return 0 if time() > $end;

		sleep($pause);
		$pause *= 1.5 if $pause < 0.05;
	}
}

# Runs a program to its end; returns its status and all of its output.

sub run_command {
	my ($command, %o) = @_;

	require File::Temp;
	my $out = File::Temp->new(TEMPLATE => 'xet-out-XXXXXX', TMPDIR => 1);
	chmod(0666, $out->filename());

	my $pid = spawn($command, output => $out->filename(), %o);
	my $status = reap($pid, $o{timeout} || 60);

	if (!defined $status) {
		kill('KILL', $pid);
		reap($pid, 5);
		$status = -1;
	}

	return ($status, slurp($out->filename()));
}

# Returns a TCP port of 127.0.0.1 that no other test uses.  A UDP socket on the
# same port of 127.0.0.2 reserves the port while this process lives.  Ports are
# below those that the system assigns to clients.

my %ports;

sub free_port {
	for (1 .. 2000) {
		my $port = 10240 + int(rand(22000));

		next if $ports{$port};

		my $lock = IO::Socket::INET->new(
			Proto => 'udp', LocalAddr => '127.0.0.2',
			LocalPort => $port
		) or next;

		my $probe = IO::Socket::INET->new(
			Proto => 'tcp', LocalAddr => '127.0.0.1',
			LocalPort => $port, Listen => 1, ReuseAddr => 1
		) or next;

		close($probe);
		$ports{$port} = $lock;

		return $port;
	}

	die "no free port\n";
}

sub children {
	my ($parent) = @_;

	my @pids;

	for my $file (glob('/proc/[0-9]*/stat')) {
		my $stat = slurp($file, 1);

		# the name in parentheses may contain anything

		next unless defined $stat
			&& $stat =~ /^(\d+) \(.*\) (\S) (\d+) /s;

		push @pids, $1 if $3 == $parent && $2 ne 'Z';
	}

	return sort { $a <=> $b } @pids;
}

sub alive {
	my ($pid) = @_;

	my $stat = slurp("/proc/$pid/stat", 1);

	return defined $stat && $stat !~ /^\d+ \(.*\) [ZX] /s ? 1 : 0;
}

sub cmdline {
	my ($pid) = @_;

	my $line = slurp("/proc/$pid/cmdline", 1) // '';
	$line =~ s/\0+$//;
	$line =~ s/\0/ /g;

	return $line;
}

# Returns the open descriptors of a process: number => target.  Local sockets,
# such as those of PostgreSQL sessions, begin with "unix".

sub fds {
	my ($pid) = @_;

	my %fds;

	opendir(my $dir, "/proc/$pid/fd") or return {};

	for my $fd (grep { /^\d+$/ } readdir($dir)) {
		my $target = readlink("/proc/$pid/fd/$fd");
		$fds{$fd} = $target if defined $target;
	}

	my %unix = map { (split ' ')[6] => 1 }
		split(/\n/, slurp('/proc/net/unix', 1) // '');

	s/^(socket:\[(\d+)\])$/$unix{$2} ? "unix $1" : $1/e for values %fds;

	return \%fds;
}

# Returns the resident memory in KiB.

sub rss {
	my ($pid) = @_;

	my $status = slurp("/proc/$pid/status", 1) // '';

	return $status =~ /^VmRSS:\s+(\d+) kB/m ? $1 : 0;
}

sub slurp {
	my ($file, $may_lack) = @_;

	my $in;

	if (!open($in, '<:raw', $file)) {
		return undef if $may_lack;
		die "cannot read $file: $!\n";
	}

	local $/;
	my $content = <$in>;

	return $content // '';
}

sub spew {
	my ($file, $content) = @_;

	open(my $out, '>:raw', $file) or die "cannot write $file: $!\n";
	print $out $content or die "cannot write $file: $!\n";
	close($out) or die "cannot write $file: $!\n";
}

# A test that dies must end its servers and keep its exit code.

END {
	my $code = $?;

	for my $pid (grep { owned($_) } keys %owner) {
		kill('CONT', $pid);
		kill('KILL', $pid);
		waitpid($pid, 0);
	}

	$? = $code;
}

1;
