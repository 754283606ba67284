#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A store has an identity, in its folder and in the database.  The server
# refuses the empty folder of a disk that is not mounted, and the folder of
# another store: it acknowledges no uploads, marks no data as lost, and logs the
# reason.  It recovers without a restart when the right folder is back.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ slurp spew /;

Test::Xet->folder('the file of the identity; the object is in t/s3/identity.t');

my $t = Test::Xet->new(workers => 2, log => 'info');
$t->run();

my $store = $t->store();
my $away = "$store.away";
my $seed = 0;

$t->allow(qr/xet: the folder ".*" is not the store of this database/);

sub put_status {
	my $data = mix(++$seed, 50_000);
	return $t->http('PUT', '/api/v1/files', {}, \$data)->{status};
}

# Replaces the store by an empty folder, as if its disk were not mounted.

sub swap_out {
	rename($store, $away) or die "$store: $!\n";
	Test::Xet::make_store($t);
	mkdir("$store/xorbs");
	mkdir("$store/xorbs/default");
	mkdir(sprintf('%s/xorbs/default/%02x', $store, $_)) for 0 .. 255;

	my (undef, undef, undef, undef, $uid, $gid) = stat($away);
	system('chown', '-R', "$uid:$gid", $store);
}

sub swap_in {
	system('rm', '-rf', $store);
	rename($away, $store) or die "$away: $!\n";
}

my $data = mix(++$seed, 300_000);
my $r = $t->http('PUT', '/api/v1/files', {}, \$data);
my $hash = $r->json()->{hash};

is($r->{status}, 200, 'a file');

my $identity = slurp("$store/identity");

like($identity, qr/\A[0-9a-f]{32}\n\z/, 'the folder has an identity');
is($t->sql('SELECT identity, confirmed FROM xet.store'),
	substr($identity, 0, 32) . '|t', 'and the database the same');

# --------------------------------------------------------------------------
# the disk is unmounted while workers run

swap_out();

$r = $t->get("/api/v1/files/$hash");
is($r->{status}, 503, 'GET: not now');
is($r->json()->{error}{code}, 'storage_unavailable', 'its code');
ok($r->header_value('Retry-After'), 'later');
is($t->http('PUT', '/api/v1/files', {}, \$data)->{status}, 503,
	'PUT of what is known');
is(put_status(), 503, 'PUT of a new file');

my $x = make_xorb(mix(++$seed, 50_000));
is($t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes})->{status}, 503,
	'POST of a xorb');
is($t->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at IS NOT NULL'), 0,
	'nothing is marked as lost');
is(scalar(() = $t->files_in_store()), 0, 'nothing is stored');

# with the default level of error_log

my ($code, $out) = $t->config_test(undef, log => 'error');
is($code, 1, 'nginx -t') or diag($out);
like($out, qr/\[warn\].*store folder has no identity.*mounted/,
	'warns') or diag($out);

swap_in();

$r = $t->get("/api/v1/files/$hash");
ok($r->{status} == 200 && $r->{body} eq $data, 'back again');
is(put_status(), 200, 'and takes files');

($code, $out) = $t->config_test();
unlike($out, qr/identity|store folder/, 'nginx -t has nothing to say');

# --------------------------------------------------------------------------
# the disk is not mounted when nginx starts

$t->stop();
swap_out();
$t->run();

ok(wait_for(20, sub {
	$t->log() =~ /failed: the store folder has no identity/ }),
	'the log says why');
is(put_status(), 503, 'PUT at the start');
is($t->get("/api/v1/files/$hash")->{status}, 503, 'GET');
is($t->get('/api/v1/health')->{status}, 503, 'health');

swap_in();

ok(wait_for(30, sub { put_status() == 200 }), 'found when it is back');
ok(wait_for(30, sub { $t->get("/api/v1/files/$hash")->{body} eq $data }),
	'with its files');

# --------------------------------------------------------------------------
# the folder of another store

swap_out();
spew("$store/identity", 'ab' x 16 . "\n");

is(put_status(), 503, 'another store');
($code, $out) = $t->config_test();
like($out, qr/\[warn\].*not the one recorded in the database/, 'nginx -t');

$t->stop();
$t->run();
ok(wait_for(20, sub { $t->log() =~ /not the one recorded in the database/ }),
	'another store at the start');
is(put_status(), 503, 'PUT');

# a new database, and a folder that belongs to another database

$t->sql('DELETE FROM xet.store');
($code, $out) = $t->config_test();
like($out, qr/\[warn\].*belongs to another database/, 'a new database');

$t->stop();
$t->run();
ok(wait_for(30, sub { $t->log() =~ /belongs to another database/ }),
	'the folder is refused');
is(put_status(), 503, 'PUT');

# the row of the identity exists but its file does not, as after a crash between
# the two writes

$t->stop();
swap_in();
$t->sql("INSERT INTO xet.store (identity) VALUES ('" . substr($identity, 0, 32)
	. "')");
unlink("$store/identity") or die;
$t->run();
ok(wait_for(30, sub { put_status() == 200 }), 'after a crash');
is(slurp("$store/identity"), $identity, 'the file is made');
is($t->sql('SELECT confirmed FROM xet.store'), 't', 'and confirmed');

$t->done();
