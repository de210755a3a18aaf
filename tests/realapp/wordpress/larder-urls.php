<?php
// Plugin Name: Purges of larder, by URL
// wp-config.php defines LARDER, its address such as http://127.0.0.1:8080, and LARDER_TOKEN, the token of its site.

// Purges at the end of the request: all of the change is in the database then.
function larder_purge( string ...$paths ): void {
	static $purged = array();
	$purged || add_action( 'shutdown', function () use ( &$purged ) {
		$home   = wp_parse_url( home_url() );
		$fields = array(
			'Host'          => $home['host'] . ( isset( $home['port'] ) ? ":$home[port]" : '' ),
			'Authorization' => 'Bearer ' . LARDER_TOKEN,
		);
		foreach ( array_unique( $purged ) as $path ) {
			wp_remote_request( LARDER . $path, array( 'method' => 'PURGE', 'headers' => $fields ) );
		}
	} );
	array_push( $purged, ...$paths );
}

// The front page, feeds, and what lies below the post and its archives. A menu, a template or a block may be on any page.
function larder_changed( ?WP_Post $post ): void {
	if ( ! $post || 'publish' !== $post->post_status ) {
		return;
	}
	$path = fn( $url ) => trailingslashit( (string) wp_parse_url( $url, PHP_URL_PATH ) );
	$home = $path( home_url( '/' ) );
	if ( ! is_post_type_viewable( $post->post_type ) ) {
		larder_purge( "$home*" );
		return;
	}
	$urls = array( get_permalink( $post ), get_author_posts_url( $post->post_author ), get_month_link( ...explode( '-', substr( $post->post_date, 0, 7 ) ) ) );
	foreach ( get_object_taxonomies( $post ) as $taxonomy ) {
		array_push( $urls, ...array_map( 'get_term_link', wp_get_object_terms( $post->ID, $taxonomy ) ) );
	}
	larder_purge( $home, "{$home}page/*", "{$home}feed/*", "{$home}comments/*", ...array_map( fn( $url ) => $path( $url ) . '*', $urls ) );
}

add_action( 'wp_after_insert_post', fn( $id, $post, $update, $before ) => array_map( 'larder_changed', array( $post, $before ) ), 10, 4 );
add_action( 'before_delete_post', fn( $id, $post ) => larder_changed( $post ), 10, 2 );
add_action( 'wp_update_comment_count', fn( $id ) => larder_changed( get_post( $id ) ) );
add_action( 'edit_comment', fn( $id ) => larder_changed( get_post( get_comment( $id )->comment_post_ID ) ) );
foreach ( array( 'wp_update_nav_menu', 'edited_term', 'switch_theme', 'customize_save_after', 'update_option_blogname', 'update_option_sidebars_widgets' ) as $hook ) {
	add_action( $hook, fn() => larder_purge( trailingslashit( (string) wp_parse_url( home_url( '/' ), PHP_URL_PATH ) ) . '*' ) );
}
