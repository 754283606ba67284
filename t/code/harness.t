#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The test harness itself: it controls nginx and PostgreSQL, and a test fails if
# the harness detects a fault.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ alive free_port reap slurp spawn spew /;

use File::Path qw/ remove_tree /;
use File::Temp qw/ tempdir /;
use POSIX ();

my $scratch = tempdir('xet-harness-XXXXXX', TMPDIR => 1, CLEANUP => 1);

my $t = Test::Xet->new(xet => 0, pg => 1, workers => 2,
	locations => 'location / { return 200 "one\n"; }');

# --------------------------------------------------------------------------
# nginx

$t->run();

is($t->get('/')->{body}, "one\n", 'nginx responds');
is(scalar(my @first = $t->worker_pids()), 2, 'two workers');
ok($t->fds() > 3, 'descriptors');
ok($t->rss() > 1000, 'resident memory');

$t->write_conf(undef, locations => 'location / { return 200 "two\n"; }');
my %old = map { $_ => 1 } $t->reload();

is($t->get('/')->{body}, "two\n", 'reload');
is(scalar(grep { $old{$_} } $t->worker_pids()), 0, 'new workers');

my $killed = $t->kill_worker();

ok(!alive($killed), 'worker killed');
is(scalar($t->worker_pids()), 2, 'and a new worker started');
is($t->get('/')->{body}, "two\n", 'new worker responds');

my ($good, $out) = $t->config_test();
ok($good, 'configuration test') or diag($out);

($good, $out) = $t->config_test(undef, server => 'no_such_directive on;');
ok(!$good, 'configuration test of a bad one');
like($out, qr/unknown directive "no_such_directive"/, 'its message');

ok($t->stop(), 'stop');
$t->run();
is($t->get('/')->{body}, "two\n", 'started again');

# --------------------------------------------------------------------------
# PostgreSQL

is($t->sql('SELECT 1, 2'), '1|2', 'query');
is_deeply([ $t->sql('SELECT * FROM generate_series(1, 3)') ], [ 1, 2, 3 ],
	'rows of a query');
ok(!eval { $t->sql('SELECT no_such_column'); 1 }, 'a query that fails');
like($@, qr/no_such_column/, 'its message');
is($t->sql('SHOW fsync'), 'off', 'fsync off');

$t->sql('CREATE TABLE IF NOT EXISTS xet.harness (n int)', user => 'xet');
$t->sql('INSERT INTO xet.harness VALUES (1), (2)', user => 'xet');
is($t->rows()->{harness}, 2, 'rows of tables');

my $lock = $t->pg_lock('xet.harness');
my $session = $t->pg_session(user => 'xet');

$session->send('SELECT count(*) FROM xet.harness');
ok(!defined $session->wait(0.3), 'a lock blocks');
$lock->unlock();
is($session->wait(), 2, 'released');

is(scalar($t->pg_backends()), 1, 'one session');
ok($t->pg_freeze(), 'freeze');

$session->send('SELECT 7');
ok(!defined $session->wait(0.3), 'a frozen server does not respond');
$t->pg_thaw();
is($session->wait(), 7, 'thawed');

is($t->pg_terminate(), 1, 'terminate');
ok(!eval { $session->run('SELECT 1'); 1 }, 'the session is gone');
$session->close();

$t->pg_restart('immediate');
is($t->rows()->{harness}, 2, 'restart keeps the data');

$t->pg_stop();
ok(!eval { $t->sql('SELECT 1'); 1 }, 'stopped');
$t->pg_start();
is($t->sql('SELECT 1'), 1, 'started');

# --------------------------------------------------------------------------
# ports

my @pids;

for my $i (1 .. 6) {
	my $pid = fork();

	if ($pid == 0) {
		my $ports = join("\n", map { free_port() } 1 .. 25);

		spew("$scratch/new.$i", $ports);
		rename("$scratch/new.$i", "$scratch/ports.$i");

		# a process keeps its ports until it ends

		wait_for(10, sub { -f "$scratch/done" });
		POSIX::_exit(0);
	}

	push @pids, $pid;
}

ok(wait_for(10, sub { 6 == (() = glob("$scratch/ports.*")) }), 'ports');
spew("$scratch/done", '');
waitpid($_, 0) for @pids;

my %ports;
$ports{$_}++ for map { split /\n/, slurp($_) } glob("$scratch/ports.*");

is(keys %ports, 150, 'no port given twice');

# --------------------------------------------------------------------------
# tests that must fail; some of them run concurrently, while the database
# template is created

my %started;

sub start {
	my ($name, $options, $code, %env) = @_;

	spew("$scratch/$name.t", <<"EOF");
use strict; use warnings;
use lib '$FindBin::Bin/../lib';
use Test::More;
use Test::Xet;
\$| = 1;
my \$t = Test::Xet->new($options);
\$t->run();
print '#dir:', \$t->dir(), ':pid:', \$t->nginx()->pid(), "\\n";
$code
\$t->done();
EOF

	$started{$name} = spawn([ $^X, "$scratch/$name.t" ],
		output => "$scratch/$name", env => \%env);
}

sub output {
	return slurp("$scratch/$_[0]", 1) // '';
}

sub fails {
	my ($name, $what) = @_;

	my $status = reap($started{$name}, 30);
	my $out = output($name);

	ok($status, "$name: fails");
	like($out, qr/^not ok \d+ - \Q$what\E$/m, "$name: with this failure");
	is(() = $out =~ /^not ok/mg, 1, "$name: with no other failure")
		or diag($out);
}

sub passes {
	my ($name) = @_;

	is(reap($started{$name}, 30), 0, "$name: passes")
		or diag(output($name));
}

my $kill = <<'EOF';
kill('KILL', ($t->worker_pids())[0]);
$t->wait_log(qr/exited on signal 9/);
EOF

my $query = 'is($t->sql("SELECT 1"), 1);';
my @template = (XET_TEST_TEMPLATE => "$scratch/template");

start($_, 'xet => 0, pg => 1', $query, @template) for qw/ good1 good2 /;
start('killed', 'xet => 0, pg => 1', 'sleep(60);');
start('dies', 'xet => 0', 'die "as asked";');

start('alert', 'xet => 0', $kill);
start('allowed', 'xet => 0, allow => [ qr/exited on signal 9/ ]', $kill);

start('exit', 'xet => 0', <<'EOF');
# the master is killed first; otherwise it would log the death of its worker
kill('KILL', $t->nginx()->pid(), $t->worker_pids());
EOF

start('temp', 'xet => 0', '$t->write_file("store/tmp/left", "x");');

start('sanitizer', 'xet => 0', <<'EOF');
open(my $out, '>>', $t->dir() . '/nginx.out');
print $out "==1==ERROR: AddressSanitizer: heap-use-after-free\n";
close($out);
EOF

start('descriptors', 'xet => 0', <<'EOF', XET_TEST_PATIENCE => 0.3);
$t->fds_mark();
our $c = $t->connect();
$c->exchange('GET', '/');
EOF

start('files', 'xet => 0, main => "worker_shutdown_timeout 1s;"',
	<<'EOF', XET_TEST_PATIENCE => 0.3);
$t->write_file('store/large', 'x' x 20000000);
our $c = $t->http_start('GET', '/large', undef, undef, rcvbuf => 4096);
$c->read_some(100);
EOF

# nginx without the module; the module would have masked the secret in the log

start('secret', 'xet => 0, server => "set \$a\nxet_b;"', <<'EOF');
$t->get('/?s=' . 'a1' x 22);
EOF

fails('secret', 'no secret in a log');
fails('alert', 'no alerts in the error log');
fails('exit', 'nginx has exited cleanly');
fails('temp', 'no temporary files left');
fails('sanitizer', 'no sanitizer report');
fails('descriptors', 'no descriptors left open');
fails('files', 'no files left open');
passes('allowed');

# a test that dies, and one that is killed: no process may survive

ok(reap($started{dies}, 10), 'a test that dies');
output('dies') =~ /#dir:(.*?):pid:(\d+)\n/ or die output('dies');
ok(!-e $1, 'its folder is gone');
ok(!alive($2), 'its nginx is gone');

ok(wait_for(20, sub { output('killed') =~ /:pid:\d+\n/ }), 'a killed test');

output('killed') =~ /#dir:(.*?):pid:(\d+)/;
my ($dir, $nginx) = ($1, $2);
my ($postgres) = slurp("$dir/pg/data/postmaster.pid") =~ /\A(\d+)/;

kill('KILL', $started{killed});
reap($started{killed}, 5);

ok(wait_for(5, sub { !alive($nginx) }), 'its nginx is gone');
ok(wait_for(5, sub { !alive($postgres) }), 'its PostgreSQL is gone');
remove_tree($dir) if $dir =~ m!^/tmp/xt-!;

passes('good1');
passes('good2');

is(scalar(my @made = glob("$scratch/template/pg-*")), 1,
	'one template for both');

$t->done();
