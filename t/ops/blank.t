#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A folder with a blank in its name: make compiles there, configures nginx, and
# finds afterwards that nothing has changed.  docker/run.sh moves data to a
# folder whose name a configuration can have; a build folder may have a blank,
# too.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Process qw/ build_dir free_port root run_command slurp /;

use File::Path qw/ make_path remove_tree /;
use File::Temp qw/ tempdir /;

my $dir = tempdir('xet-blank-XXXXXX', DIR => '/tmp', CLEANUP => 1);
my $tree = "$dir/a b/it's c";

chmod(0755, $dir);
make_path($tree);
system('cp', '-R', (map { root() . "/$_" } qw/ Makefile config conf docker sql
	src t .ci /), $tree) == 0 or die "cp: $?\n";

sub paths {
	my ($build) = @_;

	my ($status, $out) = run_command([ 'sh', "$tree/docker/paths.sh",
		$build ], dir => $tree);

	is($status, 0, "paths: $build") or diag($out);

	return split(/[ \n]/, $out);
}

my ($root, $out_dir, $build) = paths('build');

like($root, qr!^/[\w./+@-]+$!, 'the folder has another name');
is(readlink($root), $tree, 'which is a link');
is("$out_dir $build", "$root/build build", 'the build folder');
is(join(' ', paths("$tree/build")), "$root $out_dir $build",
	'the same with an absolute path');
is((paths('/tmp/x'))[1], '/tmp/x', 'another build folder');
is(readlink((paths("$dir/o p"))[2]), "$dir/o p",
	'another build folder with a blank');

sub make {
	return run_command([ 'make', '-C', $tree, @_ ], timeout => 300);
}

my @targets = ("$out_dir/nginx/.configured", 'build/sql/functions.sql',
	'build/obj/src/core/base/xet_buf.o');

for my $time ('first', 'again') {
	my ($status, $out) = make(@targets);

	is($status, 0, "make, $time") or diag($out);
	is(!!($out =~ /^  cc |^configuring/m), $time eq 'first',
		"make, $time: compiles or not") or diag($out);
}

ok(-s "$tree/build/nginx/Makefile", 'nginx is configured');
unlike(slurp("$tree/build/nginx/Makefile"), qr/\Q$tree/,
	'and its Makefile has the other name');

my ($status, $out) = make("BUILD=$dir/o p",
	(paths("$dir/o p"))[2] . '/obj/src/core/base/xet_buf.o');
is($status, 0, 'make in another build folder') or diag($out);
ok(-s "$dir/o p/obj/src/core/base/xet_buf.o", 'the object is there');

make('clean');
ok(!-e "$tree/build", 'make clean');

# --------------------------------------------------------------------------
# data, and the module of another build folder, whose name has a blank

my $data = "$dir/d e";
my $link = "$dir/m n";

symlink(build_dir(), $link) or die "symlink: $!\n";

sub script {
	my ($name, @env) = @_;

	return run_command([ 'sh', root() . "/docker/$name.sh" ],
		env => { DIR => $data, PORT => free_port(), BUILD => $link,
			@env }, timeout => 300, dir => root());
}

($status, $out) = script('run');
is($status, 0, 'run') or diag($out);
like($out, qr/^run: .*\Q$data\E .* is now a link to \S+$/m,
	'run: where data is');
like($out, qr/^  '\Q$link\E'?.*\/xet.* verify/m, 'run: quoted for a shell');

my $to = readlink($data);

($status, $out) = script('stop');
is($out, "stop: stopped nginx and PostgreSQL in $to\n", 'stop');

remove_tree($to) if $to;

done_testing();
