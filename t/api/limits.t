#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Limits of one client: concurrent uploads and bytes per time, counted across
# workers, reloads and crashes; and conf/xet_limits.conf as shipped.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ patience root slurp /;

use Digest::SHA qw/ hmac_sha256 /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64url /;
use Time::HiRes qw/ sleep time /;

my $secret = 'ab' x 32;

sub location {
	my ($name, @directives) = @_;

	return join("\n            ", "location /$name/ {", 'xet_api;',
		"xet_api_base /$name;", 'xet_retry_after 7s;',
		'client_max_body_size 80m;', 'add_header X-Pid $pid always;',
		'error_page 408 429 @xet_error;', @directives) . "\n"
		. "        }\n        ";
}

my $locations = join('',
	location('api', 'xet_auth token;', 'xet_access store;',
		'xet_upload_limit three;'),
	location('open', 'xet_auth off;', 'xet_upload_limit three;'),
	location('slow', 'xet_auth off;', 'xet_upload_limit one;',
		'client_body_timeout 1s;'),
	location('bytes', 'xet_auth off;', 'xet_upload_limit day;'),
	location('few', 'xet_auth off;', 'xet_shard_max_chunks 2000;'),
	location('soon', 'xet_auth off;', 'xet_upload_limit soon;'),
	location('tiny', 'xet_auth off;', 'xet_upload_limit tiny;'),
	location('off', 'xet_auth off;', 'xet_upload_limit off;'),
	"location \@xet_error {\n            xet_error;\n        }\n");

my $zones = <<'EOC';
xet_token_key %%DIR%%/token.key;
    xet_upload_zone $xet_client zone=three:64k concurrent=3;
    xet_upload_zone $http_x_who zone=one:64k concurrent=1;
    xet_upload_zone $http_x_who zone=day:64k bytes=1000000/1d;
    xet_upload_zone $http_x_who zone=soon:64k bytes=100k/3s;
    xet_upload_zone $http_x_who zone=tiny:32k concurrent=9 bytes=1g/1d;
    xet_upload_limit one;
EOC

my $conf = Test::Xet::default_conf();

my $t = Test::Xet->new(conf => $conf, workers => 2, log => 'info',
	connections => 4096, main => 'worker_rlimit_nofile 8192;',
	http => $zones, locations => $locations);

$t->write_file('token.key', "token:t1:$secret\n");
chmod(0600, $t->dir() . '/token.key');

# --------------------------------------------------------------------------
# what "nginx -t" refuses

my $zone = 'xet_upload_zone $xet_client zone=z:64k';

for (
	[ "$zone;", 'number of arguments' ],
	[ "$zone concurrent=1 bytes=1m/1s concurrent=2;",
		'number of arguments' ],
	[ "$zone concurrent=0;", 'invalid parameter "concurrent=0"' ],
	[ "$zone concurrent=-1;", 'invalid parameter' ],
	[ "$zone concurrent=1000001;", 'invalid parameter' ],
	[ "$zone concurrent=;", 'invalid parameter' ],
	[ "$zone concurrent=2x;", 'invalid parameter' ],
	[ "$zone concurrent=2 concurrent=3;", 'duplicate parameter' ],
	[ "$zone bytes=1m;", 'invalid parameter "bytes=1m"' ],
	[ "$zone bytes=1m/;", 'invalid parameter' ],
	[ "$zone bytes=/1d;", 'invalid parameter' ],
	[ "$zone bytes=0/1d;", 'invalid parameter' ],
	[ "$zone bytes=-1/1d;", 'invalid parameter' ],
	[ "$zone bytes=1m/0s;", 'invalid parameter' ],
	[ "$zone bytes=1m/999ms;", 'invalid parameter' ],
	[ "$zone bytes=1m/32d;", 'invalid parameter' ],
	[ "$zone bytes=9007199254740993/1d;", 'invalid parameter' ],
	[ "$zone bytes=99999999999999999999/1d;", 'invalid parameter' ],
	[ "$zone bytes=1m/1d/1d;", 'invalid parameter' ],
	[ "$zone bytes=1m/1d bytes=1m/1d;", 'duplicate parameter' ],
	[ "$zone rate=1m;", 'invalid parameter "rate=1m"' ],
	[ 'xet_upload_zone $xet_client z:64k concurrent=1;', 'invalid zone' ],
	[ 'xet_upload_zone $xet_client zone=z concurrent=1;', 'invalid zone' ],
	[ 'xet_upload_zone $xet_client zone=:64k concurrent=1;',
		'invalid zone' ],
	[ 'xet_upload_zone $xet_client zone=z:x concurrent=1;',
		'invalid zone' ],
	[ 'xet_upload_zone $xet_client zone=z:28k concurrent=1;',
		'too small' ],
	[ 'xet_upload_zone $no_such zone=z:64k concurrent=1;',
		'unknown "no_such" variable' ],
	[ "$zone concurrent=1; $zone concurrent=2;", 'duplicate zone "z"' ],
	[ "$zone concurrent=1; xet_token_cache zone=z:64k;",
		'duplicate zone "z"' ],
	[ "xet_token_cache zone=z:64k; $zone concurrent=1;",
		'duplicate zone "z"' ],
	[ "limit_conn_zone \$uri zone=z:64k; $zone concurrent=1;",
		'already declared' ],
	[ 'xet_upload_limit none;',
		'"xet_upload_zone" "none" must be defined' ],
	[ "xet_upload_limit z; $zone concurrent=1;",
		'"xet_upload_zone" "z" must be defined' ],
	[ "$zone concurrent=1; xet_upload_limit z; xet_upload_limit off;",
		'is duplicate' ],
	[ 'xet_upload_limit;', 'number of arguments' ],
	[ "server { $zone concurrent=1; }", 'not allowed here' ]
) {
	my ($lines, $message) = @$_;
	my ($good, $output) = $t->config_test($conf, http => $lines,
		locations => '');

	ok(!$good, "refused: $lines");
	like($output, qr/\Q$message\E.*\n/, "message: $message");
	like($output, qr/ in \S+:\d+\n/, 'line number')
		unless $message =~ /^unknown/;
}

for (
	"$zone concurrent=1;", "$zone bytes=1/1s;", "$zone bytes=1g/31d;",
	"$zone concurrent=1000000 bytes=9007199254740992/1s;",
	"$zone concurrent=1; xet_upload_limit z;",
	"$zone concurrent=1; server { xet_upload_limit z; }"
) {
	my ($good, $output) = $t->config_test($conf, http => $_,
		locations => '');

	ok($good, "accepted: $_") or diag($output);
}

$t->run();

# --------------------------------------------------------------------------
# helpers

my $seed = 0;

sub fresh {
	return make_xorb(random_bytes(++$seed, $_[0]), scheme => 'none');
}

sub token {
	my (%claims) = @_;

	my %c = (exp => int(time()) + 3600, scope => 'write', %claims);
	delete $c{sub} unless defined $c{sub};

	my $input = join('.', map { encode_base64url(JSON::PP->new()
		->canonical()->encode($_)) }
		{ alg => 'HS256', typ => 'JWT', kid => 't1' }, \%c);

	return "$input." . encode_base64url(
		hmac_sha256($input, pack('H*', $secret)));
}

# Returns the headers that name the caller, as the location expects them.

sub as {
	my ($base, $who) = @_;

	return $base eq 'api'
		? (Authorization => 'Bearer ' . token(sub => $who))
		: ('X-Who' => $who);
}

sub upload {
	my ($base, $who, $x, %o) = @_;

	return $t->post("/$base/v1/xorbs/default/$x->{hash}", \$x->{bytes},
		{ as($base, $who) }, %o);
}

# Starts an upload and sends nothing of the body.  nginx sends "100 Continue"
# when the module begins to read the body, so the upload then has a slot.

sub hold {
	my ($base, $who, $x, %o) = @_;

	my $c = $t->http_start('POST', "/$base/v1/xorbs/default/$x->{hash}",
		{ as($base, $who), Expect => '100-continue',
			'Content-Length' => length($x->{bytes}) });

	my $r = $c->response('POST', interim => 1);

	if ($r->{status} != 100) {
		$c->close();
		return $o{answer} ? $r : undef;
	}

	return $c;
}

sub finish {
	my ($c, $x) = @_;

	$c->send($x->{bytes});

	my $r = $c->response('POST');
	$c->close();

	return $r->{status};
}

sub is_refused {
	my ($r, $code, $name, $after) = @_;

	is($r->{status}, 429, "$name: 429");
	is($r->header_value('Content-Type'), 'application/json',
		"$name: JSON");
	is($r->json()->{error}{code}, $code, "$name: $code");
	is($r->header_value('Retry-After'), $after, "$name: Retry-After")
		if defined $after;
}

sub pid_of {
	return $_[0]->exchange('GET', '/open/v1/nothing')
		->header_value('X-Pid');
}

my $x = fresh(100000);

# --------------------------------------------------------------------------
# concurrent uploads

$t->fds_mark();

my $from = $t->log_size();
my @held = map { hold('api', 'ann', $x) } 1 .. 3;

is(scalar(grep { defined } @held), 3, 'three at a time');
is_refused(upload('api', 'ann', $x), 'too_many_uploads', 'a fourth', 7);
is_refused(hold('api', 'ann', $x, answer => 1), 'too_many_uploads',
	'a fourth that asks first', 7);

is(scalar(() = $t->log($from) =~ /\[error\].* xet: 429 too_many_uploads/g), 2,
	'a line for each');
unlike($t->log($from), qr/ann/, 'without the subject');

is($t->get('/api/v1/reconstructions/' . 'ab' x 32, { as('api', 'ann') })
	->{status}, 404, 'reads are not limited');
is($t->post('/api/v1/telemetry', '{"event":"e"}', { as('api', 'ann') })
	->{status}, 200, 'telemetry is no upload');
is($t->http('DELETE', '/api/v1/files/' . 'ab' x 32, { as('api', 'ann') })
	->{status}, 403, 'nor is DELETE');
is($t->post('/api/v1/shards', 'no shard', { as('api', 'ann') })->{status},
	429, 'a shard is');
is($t->post('/api/shard/default/' . 'ab' x 32, 'no shard',
	{ as('api', 'ann') })->{status}, 429, 'by its old name, too');

is(upload('api', 'bob', $x)->{status}, 200, 'another subject');
is(upload('off', '', $x)->{status}, 200, 'where the limit is off');

my @open = map { hold('open', '', $x) } 1 .. 3;

is(scalar(grep { defined } @open), 3, 'an address');
is(upload('open', '', $x)->{status}, 429, 'an address: a fourth');
is(hold('open', '', $x), undef, 'refused again');
is(upload('api', '127.0.0.1', $x)->{status}, 200,
	'a subject named like the address');
is(upload('api', undef, $x)->{status}, 429,
	'a token without a subject: by address');
is(finish($_, $x), 200, 'the held uploads succeed') for @open;

is(finish($held[0], $x), 200, 'one upload ends');
ok(wait_for(5, sub { $held[0] = hold('api', 'ann', $x) }),
	'another upload may begin');
is(upload('api', 'ann', $x)->{status}, 429, 'but no more');

$held[1]->close();
ok(wait_for(5, sub { $held[1] = hold('api', 'ann', $x) }),
	'one client disconnects');

$held[2]->send('noise' x (length($x->{bytes}) / 5 + 1));
is($held[2]->response('POST')->{status}, 400, 'one was refused');
$held[2]->close();
ok(wait_for(5, sub { $held[2] = hold('api', 'ann', $x) }), 'likewise');

is(finish($_, $x), 200, 'all uploads succeed') for @held;

# the slot is free before the client gets its response

my $many_in_a_row = 0;

for (1 .. 100) {
	$many_in_a_row += upload('slow', 'in a row', $x)->{status} == 200;
}

is($many_in_a_row, 100, 'one at a time, a hundred in a row');

my $shard = make_shard({ xorbs => [], files => [ {
	verification => JSON::PP::true, terms => [ { xorb => $x->{hash},
		start => 0, end => scalar(@{ $x->{chunks} }),
		chunks => $x->{chunks} } ] } ] });
my %shards;

for my $n (1 .. 40) {
	my $r = $t->post('/slow/v' . (1 + $n % 2) . '/shards',
		\$shard->{bytes}, { 'X-Who' => 'in a row' });

	my $said = $n % 2 ? $r->frames()->[-1]{data} : $r->json();

	$shards{"$r->{status} " . ($said->{result} // $r->{body})}++;
}

is(join(', ', map { "$_: $shards{$_}" } sort keys %shards),
	'200 0: 39, 200 1: 1', 'shards, too') or diag(explain(\%shards));

# a refused request, which has no slot, does not free one

is(upload('api', 'ann', $x)->{status}, 200, 'one upload after the other')
	for 1 .. 5;
@held = map { hold('api', 'ann', $x) } 1 .. 3;
is(hold('api', 'ann', $x), undef, 'still three at a time');

# bad paths and bad tokens are not counted

is($t->post('/api/v1/xorbs/default/zz', 'x', { as('api', 'dan') })->{status},
	400, 'a bad path') for 1 .. 4;
is($t->post("/api/v1/xorbs/default/$x->{hash}", 'x',
	{ Authorization => 'Bearer ' . token(sub => 'dan', scope => 'read') })
	->{status}, 403, 'a token to read') for 1 .. 4;
is(upload('api', 'dan', $x)->{status}, 200, 'do not count');

$_->close() for @held;

# uploads that begin and end in all ways

srand(5);

my %c = map { $_ => [] } map { "w$_" } 1 .. 8;

for (1 .. 400) {
	my $who = 'w' . (1 + int(rand(8)));
	my $of = $c{$who};
	my $how = int(rand(5));

	if ($how < 2 || !@$of) {
		push @$of, hold('api', $who, $x) // next;
		next;
	}

	my $c = splice(@$of, int(rand(@$of)), 1);

	is(finish($c, $x), 200, "$who: an upload succeeds") if $how == 2;
	$c->close() if $how == 3;
	$c->abort() if $how == 4;
}

for my $who (sort keys %c) {
	$_->close() for splice(@{ $c{$who} });

	ok(wait_for(5, sub {
		my $c = hold('api', $who, $x) // return;
		return push(@{ $c{$who} }, $c) == 3;
	}), "$who: three at a time");
}

is(scalar(grep { hold('api', $_, $x) } sort keys %c), 0, 'but no more');
$_->close() for map { @$_ } values %c;

# --------------------------------------------------------------------------
# two workers, a reload, a crash

my ($one, $two) = $t->worker_pids();

sub on {
	my ($pid, $do) = @_;

	my ($other) = grep { $_ != $pid } $t->worker_pids();
	my @result;

	kill('STOP', $other);

	# until the worker has stopped, the kernel might still give it a
	# connection

	wait_for(5, sub {
		slurp("/proc/$other/stat") =~ /^\d+ \(.*\) T /s
	}) or die "worker $other does not stop\n";

	@result = $do->();
	kill('CONT', $other);

	return @result;
}

sub hold_on {
	my ($pid, $who) = @_;

	return on($pid, sub {
		my $c = $t->connect();
		is(pid_of($c), $pid, "worker $pid");

		$c->start('POST', "/api/v1/xorbs/default/$x->{hash}",
			{ as('api', $who), Expect => '100-continue',
				'Content-Length' => length($x->{bytes}) });

		return ($c, $c->response('POST', interim => 1)->{status});
	});
}

my @on = ([ hold_on($one, 'eve') ], [ hold_on($two, 'eve') ],
	[ hold_on($one, 'eve') ], [ hold_on($two, 'eve') ]);

is(join(' ', map { $_->[1] } @on), '100 100 100 429',
	'counted across both workers');

# the old workers keep their uploads, and the new ones count them

my @old = $t->reload();

is(upload('api', 'eve', $x)->{status}, 429, 'counted over a reload');
is(finish($on[0][0], $x), 200, 'an upload of an old worker ends');
ok(wait_for(5, sub { $held[0] = hold('api', 'eve', $x) }),
	'a new worker accepts one');
is(upload('api', 'eve', $x)->{status}, 429, 'but only one');

# an old worker is killed and no new one replaces it: the slots of dead workers
# become free

push @{ $t->nginx()->{allow} },
	map { qr/worker process $_ exited on signal 9/ } @old;

kill('KILL', $two);
ok(wait_for(10, sub { $held[1] = hold('api', 'eve', $x) }),
	'a killed old worker');
is(finish($_, $x), 200, 'the other uploads succeed') for $on[2][0], @held[0, 1];
$_->[0]->close() for @on;

# a worker is killed, and its replacement frees the slots of the killed one

($one, $two) = $t->worker_pids();
@on = ([ hold_on($one, 'fay') ], [ hold_on($one, 'fay') ],
	[ hold_on($two, 'fay') ], [ hold_on($one, 'fay') ]);
is(join(' ', map { $_->[1] } @on), '100 100 100 429', 'two and one');

$t->kill_worker('KILL', $one);
@held = map { hold('api', 'fay', $x) } 1, 2;
is(scalar(grep { defined } @held), 2, 'two slots of a killed worker are free');
is(upload('api', 'fay', $x)->{status}, 429, 'and not three');
is(finish($on[2][0], $x), 200, "the other worker's upload succeeds");
$_->[0]->close() for @on;
is(finish($_, $x), 200, 'all uploads succeed') for @held;

# zones with other limits and sizes

$zones =~ s/three:64k concurrent=3/three:64k concurrent=1/ or die;
$zones =~ s/one:64k/one:128k/ or die;
$t->write_conf($conf, http => $zones);

@held = map { hold('api', 'gil', $x) } 1 .. 3;
$t->reload();
is(upload('api', 'gil', $x)->{status}, 429, 'a lower limit');
is(finish($_, $x), 200, 'earlier uploads succeed') for @held;
ok(wait_for(5, sub { $held[0] = hold('api', 'gil', $x) }), 'one at a time');
is(upload('api', 'gil', $x)->{status}, 429, 'not two at a time');
$held[0]->close();

# --------------------------------------------------------------------------
# a client that stops sending keeps its slot until the timeout

my $c = hold('slow', 'hal', $x);
my $begun = time();

is(upload('slow', 'hal', $x)->{status}, 429, 'an idle upload keeps its slot');
ok($c->closed(5), 'until nginx closes it');
cmp_ok(time() - $begun, '>', 0.7, 'by client_body_timeout');
cmp_ok(time() - $begun, '<', patience(3), 'in time');
$c->close();
ok(wait_for(5, sub { upload('slow', 'hal', $x)->{status} == 200 }),
	'then the slot is free');

is(upload('slow', '', $x)->{status}, 200, 'an empty key');
@held = map { hold('slow', '', $x) } 1 .. 5;
is(scalar(grep { defined } @held), 5, 'is not counted');
$_->close() for @held;

# --------------------------------------------------------------------------
# bytes

my $y = fresh(400000);
my $part = length($y->{bytes});

is(upload('bytes', 'ida', $y)->{status}, 200,
	'bytes: below the limit') for 1, 2;

my $r = upload('bytes', 'ida', $y);
is_refused($r, 'too_many_bytes', 'bytes: no room');

# the wait is the excess divided by the rate, which is a million bytes a day

my $after = (3 * $part - 1000000) * 86400 / 1000000;

cmp_ok($r->header_value('Retry-After'), '<=', $after + 1,
	'Retry-After: not too late');
cmp_ok($r->header_value('Retry-After'), '>=', $after - patience(60),
	'Retry-After: not too early');
is(upload('bytes', 'ida', $x)->{status}, 200, 'a smaller upload');
is(upload('bytes', 'joe', $y)->{status}, 200, 'another subject');

# announced bytes are reserved; bytes that do not arrive are released

my $large = fresh(900000);
$c = hold('bytes', 'kim', $large);
ok($c, 'an upload is announced');
is(upload('bytes', 'kim', $y)->{status}, 429, 'its bytes are reserved');
$c->send(substr($large->{bytes}, 0, 200000));
sleep(0.2);
$c->close();
ok(wait_for(5, sub { upload('bytes', 'kim', $y)->{status} == 200 }),
	'unused bytes are returned');
is(upload('bytes', 'kim', $y)->{status}, 429, 'received bytes are counted');

# an upload larger than the limit itself

my $huge = fresh(1500000);
is(upload('bytes', 'lea', $huge)->{status}, 200, 'more than the limit');
is(upload('bytes', 'lea', $x)->{status}, 429, 'delays the next upload');
is(upload('bytes', 'joe', $huge)->{status}, 429, 'only if nothing is counted');

# chunked uploads reserve the location's maximum; only received bytes are
# counted

is(upload('bytes', 'max', $y, chunked => 1)->{status}, 200, 'chunked');
is(upload('bytes', 'max', $y, chunked => 1)->{status}, 429,
	'chunked: the maximum is reserved');
is(upload('bytes', 'max', $y)->{status}, 200, 'chunked: the real size');
is(upload('bytes', 'max', $y)->{status}, 429, 'chunked: counted');

# bytes of a refused upload count, since they were received

$r = $t->post('/bytes/v1/xorbs/default/' . 'ab' x 32, \$large->{bytes},
	{ 'X-Who' => 'ned' });
is($r->{status}, 400, 'a wrong hash');
is(upload('bytes', 'ned', $y)->{status}, 429, 'received bytes are counted');

# a shard counts as the bytes that its terms name, not as its own length

my $wide = make_xorb(random_bytes(++$seed, 100000), scheme => 'none',
	sizes => [ 100 ]);

sub shard {
	my ($terms) = @_;

	return make_shard({ files => [ { terms => [ ({ xorb => $wide->{hash},
		start => 0, end => 1000 }) x $terms ] } ],
		xorbs => [ $wide ] })->{bytes};
}

is(upload('few', 'oda', $wide)->{status}, 200, 'chunks: a xorb of 1000');
is($t->post('/few/v1/shards', \shard(2))->{status}, 200,
	'chunks: as many as allowed');
is_deeply($t->post('/few/v1/shards', \shard(3))->refusal(),
	[ 413, 'application/json', 'too_many_chunks' ],
	'chunks: one term more');

is($t->post('/bytes/v1/shards', \shard(2), { 'X-Who' => 'oda' })->{status},
	200, 'chunks: known');
is(upload('bytes', 'oda', $x)->{status}, 429, 'chunks: count as bytes');

# counted bytes become free again with time

is(upload('soon', 'oda', $x)->{status}, 200, 'soon: below the limit');
$r = upload('soon', 'oda', $x);
is_refused($r, 'too_many_bytes', 'soon: above the limit');
cmp_ok($r->header_value('Retry-After'), '<=', 3, 'soon: Retry-After');
sleep($r->header_value('Retry-After'));
is(upload('soon', 'oda', $x)->{status}, 200, 'soon: after Retry-After');

# --------------------------------------------------------------------------
# a small zone: the zone reuses nodes of idle callers, but not of active ones

my %many;

for my $n (1 .. 1000) {
	$many{$t->post("/tiny/v1/xorbs/default/$x->{hash}", 'noise',
		{ 'X-Who' => "n$n" })->{status}}++;
}

is(join(' ', map { "$_:$many{$_}" } sort keys %many), '400:1000',
	'many subjects, one by one');

my (@running, $full);

for my $n (1 .. 400) {
	my $c = hold('tiny', "m$n", $x, answer => 1);

	if (ref($c) =~ /Response/) {
		$full = $c;
		last;
	}

	push @running, $c;
}

ok($full, 'a full zone');
cmp_ok(scalar(@running), '>', 30, 'holds ' . @running);
is($full->{status}, 503, 'full: 503');
is($full->json()->{error}{code}, 'overloaded', 'full: code');
is($full->header_value('Retry-After'), 7, 'full: Retry-After');

# if the refused upload has created its subject, that room is still free

$r = hold('tiny', 'm1', $x, answer => 1);
push @running, $r unless ref($r) =~ /Response/;

is(upload('tiny', 'm1', $x)->{status}, 503, 'full: also for subjects in it');
is(finish($_, $x), 200, 'a running upload succeeds') for splice(@running, 0, 3);
ok(wait_for(5, sub { upload('tiny', 'm5', $x)->{status} == 200 }),
	'and frees its node');
$_->close() for @running;
ok(wait_for(5, sub { upload('tiny', 'p', $x)->{status} == 200 }),
	'all slots are free');

$t->check_fds();

# --------------------------------------------------------------------------
# the sample as shipped; the test adds its own locations for tokens

my $store = $t->store();

my $sample = slurp(root() . '/conf/xet_location.conf')
	=~ s!/var/lib/xet\b!$store!gr;

$t->write_conf($conf, locations => "xet_auth token;\nxet_access store;\n"
	. $sample, http => "keepalive_requests 100000;\n"
	. "    xet_token_key %%DIR%%/token.key;\n"
	. '    include %%ROOT%%/conf/xet_limits.conf;');
$t->reload();

# a burst of requests on one connection

sub burst {
	my ($n, $uri, %headers) = @_;

	my $c = $t->connect(timeout => 30);
	my $head = join('', map { "$_: $headers{$_}\r\n" } sort keys %headers);

	$c->send("GET $uri HTTP/1.1\r\nHost: localhost\r\n$head\r\n" x $n);

	my %n;
	my $last;

	for (1 .. $n) {
		my $r = $c->response('GET');

		$n{$r->{status}}++;
		$last = $r if $r->{status} == 429;
	}

	$c->close();

	return (\%n, $last);
}

my $none = '/api/v1/reconstructions/none';
my ($n, $last) = burst(2000, $none, as('api', 'ann'));

cmp_ok($n->{400} // 0, '>=', 401, 'a burst of requests passes');
cmp_ok($n->{429} // 0, '>=', 200, 'more requests do not');
is(join(' ', sort keys %$n), '400 429', 'no other status');
is_refused($last, 'too_many_requests', 'a burst', 5);

is($t->get($none, { as('api', 'bob') })->{status}, 400, 'another subject');

($n) = burst(2000, $none);
cmp_ok($n->{429} // 0, '>=', 200, 'no token: by address');

is($t->get("/xorbs/default/ab/$x->{hash}")->{status}, 403,
	'data is not counted');
($n) = burst(1000, "/xorbs/default/ab/$x->{hash}");
is($n->{403}, 1000, 'of data: 200 or 404');

# concurrent requests: telemetry reports whose bodies never end

sub report {
	my ($who, $scope) = @_;

	my $c = $t->http_start('POST', '/api/v1/telemetry', {
		Authorization => 'Bearer '
			. token(sub => $who, scope => $scope),
		Expect => '100-continue', 'Content-Length' => 100 });

	my $r = $c->response('POST', interim => 1);

	push @running, $c;

	return $r;
}

@running = ();
is(scalar(grep { report('cat', 'read')->{status} == 100 } 1 .. 128), 128,
	'128 requests of a reader');
is_refused(report('cat', 'read'), 'too_many_requests', 'one more', 5);
is(report('dog', 'read')->{status}, 100, 'another reader');
is(report('cow', 'write')->{status}, 100, 'a writer') for 1 .. 2;
$_->close() for splice(@running);

ok(wait_for(5, sub { report('cat', 'read')->{status} == 100 }),
	'after they have ended');
$_->close() for splice(@running);

# concurrent uploads

@held = map { hold('api', 'ewe', $x) } 1 .. 128;
is(scalar(grep { defined } @held), 128, '128 uploads');
is_refused(upload('api', 'ewe', $x), 'too_many_uploads', 'one more', 5);
is($t->get($none, { as('api', 'ewe') })->{status}, 400,
	'reads are not limited');
is(upload('api', 'fox', $x)->{status}, 200, 'another subject');
is(finish($_, $x), 200, 'the uploads succeed') for splice(@held, 0, 3);
$_->close() for @held;
ok(wait_for(5, sub { upload('api', 'ewe', $x)->{status} == 200 }),
	'after they have ended');

# the limit for all tokens of a repo together, lowered so that the test reaches
# it sooner

my $lower = slurp(root() . '/conf/xet_limits.conf');

$lower =~ s!(zone=xet_repos:)10m rate=2000r/s!${1}64k rate=1r/s!
	&& $lower =~ s!(zone=xet_repos burst=)4000!${1}40! or die;

$t->write_file('lower.conf', $lower);
$t->write_conf($conf, http =>
	"keepalive_requests 100000;\n    xet_token_key %%DIR%%/token.key;\n"
	. '    include %%DIR%%/lower.conf;');
$t->reload();

my %repo;

for my $who (map { "r$_" } 1 .. 6) {
	($n) = burst(20, $none,
		Authorization => 'Bearer ' . token(sub => $who, repo => 'r'));
	$repo{$_} += $n->{$_} for keys %$n;
}

cmp_ok($repo{400}, '>=', 41, 'requests of a repo');
cmp_ok($repo{429}, '>=', 120 - 41 - patience(30), 'by all of its tokens');
is($t->get($none, { as('api', 'r1') })->{status}, 400, 'no repo: not counted');

$t->done();
