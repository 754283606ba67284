#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# "make install": the installed files.  Files that an operator has changed are
# kept, however often "make install" runs, and with any version.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Nginx;
use Test::Xet::Process qw/ build_dir root run_command slurp spew /;

use File::Path qw/ make_path /;
use File::Temp qw/ tempdir /;

# a copy of the tree without build results, so that the test may change files

my $tree = tempdir('xet-tree-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $dest = tempdir('xet-dest-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $conf = "$dest/etc/nginx/xet";
my $share = "$dest/usr/share/xet";

system('cp', '-R', (map { root() . "/$_" }
	qw/ Makefile conf docker sql docs src /), $tree) == 0
	or die "cp: $?\n";

# Fake build results, so that "make build cli" has nothing to do.

make_path("$tree/built/nginx");
spew("$tree/built/nginx/ngx_http_xet_module.so", "module\n");
spew("$tree/built/xet", "client\n");

sub install {
	my ($name, @make) = @_;

	my ($status, $out) = run_command([ 'make', '-C', $tree, 'install',
		"BUILD=$tree/built", "DESTDIR=$dest", '-o', 'build', '-o',
		'cli', "CLI_BIN=$tree/built/xet",
		'NGINX=' . Test::Xet::Nginx::binary(), @make ]);

	is($status, 0, "$name: runs") or diag($out);

	return $out;
}

sub same {
	my ($is, $from, $name) = @_;

	is(slurp($is, 1), slurp("$tree/$from"), $name);
}

sub append {
	my ($file, $text) = @_;

	spew($file, slurp($file) . $text);
}

my $out = install('the first time');

same("$conf/$_", "conf/$_", "$_") for qw/ xet_location.conf xet_limits.conf
	xet_audit.conf xet_bucket.conf /;
same("$share/conf/nginx.conf", 'conf/nginx.conf', 'the example');
ok(!-e "$conf/nginx.conf", 'which is not in the place of another');
same("$share/sql/$_", "built/sql/$_", $_) for qw/ migrate.sql functions.sql /;
same("$dest/usr/share/man/man1/xet.1", 'docs/xet.1', 'the manual');
is(slurp("$dest/usr/bin/xet"), "client\n", 'the client');
is(scalar(() = `find $dest -name ngx_http_xet_module.so`), 1, 'the module');
unlike($out, qr/was changed/, 'nothing was changed');

# the operator changes a file; the next version changes this file, another file
# and the SQL

append("$conf/xet_location.conf", "# mine\n");
append("$tree/conf/$_", "# next\n") for qw/ xet_location.conf edge.conf /;
append("$tree/sql/files.sql", "-- next\n");
spew("$tree/sql/0999_next.sql", "SELECT 1;\n");

my $mine = slurp("$conf/xet_location.conf");

for my $time ('the next version', 'the next version again') {
	$out = install($time);

	is(slurp("$conf/xet_location.conf"), $mine, "$time: mine stays");
	like($out, qr!^\Q$conf/xet_location.conf\E was changed .*\.dist$!m,
		"$time: with a message");
	same("$conf/xet_location.conf.dist", 'conf/xet_location.conf',
		"$time: beside it the new one");
	same("$conf/edge.conf", 'conf/edge.conf',
		"$time: one that was not changed is new");
	is(scalar(() = $out =~ /was changed/g), 1, "$time: no other");
	same("$share/sql/functions.sql", 'built/sql/functions.sql',
		"$time: functions");
	like(slurp("$share/sql/functions.sql"), qr/^-- next$/m,
		"$time: functions of all files");
}

# the operator replaces the changed file by the new version's file

rename("$conf/xet_location.conf.dist", "$conf/xet_location.conf") or die;
unlike(install('taken'), qr/was changed/, 'taken: nothing to say');
append("$tree/conf/xet_location.conf", "# and one more\n");
unlike(install('one more'), qr/was changed/, 'one more: nothing to say');
same("$conf/xet_location.conf", 'conf/xet_location.conf', 'one more: is there');

# back to the first version, whose SQL does not have the later migration

unlink("$tree/sql/0999_next.sql") or die;
install('the version before');
ok(!-e "$share/sql/0999_next.sql", 'a migration of another version is gone');

# an upgrade from a version that kept no copies in share

unlink(glob("$share/conf/*"));
append("$conf/xet_limits.conf", "# mine\n");
like(install('no copies'), qr!/xet_limits\.conf was changed and stays!,
	'no copies: what differs stays');

done_testing();
